"""What the server of the demonstration stands on: the simulated engine in our time, and its meters."""

from collections.abc import Callable

from muster.demo.habits import luck
from muster.demo.meters import SimMeters, Where
from muster.demo.past import Past
from muster.demo.work import USUAL, Kind, life_of
from muster.engines.base import Host
from muster.engines.sim import Life, LiveEngine
from muster.home import Home
from muster.model.job import Job
from muster.model.units import MINUTE
from muster.server.config_tables import Config
from muster.server.footing import Environment, Find, Reader

_QUICKER = 15.0  # what is submitted while somebody watches is so much shorter than usual: they want to see
_VISITORS = Kind(name="", team="", owners=())  # what nobody at the site runs usually
_VISITORS_SECONDS = (2 * MINUTE, 8 * MINUTE)


class SimFooting:
    """Goes on where the week has ended."""

    def __init__(self, past: Past, speed: float, foreign: Where | None = None) -> None:
        self._past, self._speed, self._foreign = past, speed, foreign
        self._usual = {kind.name: kind for kind in USUAL}
        self.live: LiveEngine | None = None

    def engine(self, home: Home, find: Find, environment: Environment, since: float) -> Host:  # noqa: ARG002
        past = self._past.sim
        self.live = LiveEngine((), find, self.fate, past=past, since=since, speed=self._speed)
        return self.live

    def meters(self, home: Home, now: Callable[[], float]) -> Reader:  # noqa: ARG002
        assert self.live is not None, "the engine comes first"
        return SimMeters(self.live, lambda job: self.kind_of(job).habit, self._foreign)

    def configure(self, home: Home, config: Config) -> None:
        """A week is as it was."""

    def kind_of(self, job: Job) -> Kind:
        """By its id, if it is of the week; otherwise by its name."""
        known = self._past.kinds.get(job.id.partition("_")[0])
        return known or self._usual.get(job.name, _VISITORS)

    def fate(self, job: Job, attempt: int) -> Life:
        if job.id in self._past.lives:
            return Life(self._past.lives[job.id])
        key = f"{job.id}.{attempt}"
        kind = self.kind_of(job)
        if kind is _VISITORS:
            least, most = _VISITORS_SECONDS
            return Life(least + (most - least) * luck(key))
        life = life_of(kind, key)
        return Life(life.seconds / _QUICKER, life.outcome, life.exit_code)
