"""Standing on a cluster that Slurm runs: its engine, and meters that ask Slurm."""

import time
from collections.abc import Callable, Mapping, Sequence

from muster.application.adopting import charter_in
from muster.engines.base import Host, Key
from muster.engines.slurm.client import Slurm
from muster.engines.slurm.connecting import connect
from muster.engines.slurm.engine import SlurmEngine
from muster.engines.slurm.errors import SlurmError
from muster.engines.slurm.meter import Shown, shown
from muster.engines.slurm.moves import Reading as ReadingOthers
from muster.engines.slurm.settings import SlurmSettings
from muster.home import Home
from muster.model.tenancy import ROOT
from muster.model.usage import GpuShown, NodeReading, Reading
from muster.monitor.meters.gather import Attended, Readings
from muster.server.config_tables import Config
from muster.server.footing import Environment, Find, Reader
from muster.server.standing import all_standing, read_standing

_METER = "slurm"
_TIMES_AS_LONG = 9  # between two questions, as the one before took


class SlurmFooting:
    """The cluster that ``[slurm]`` speaks of. The engine is made first; its meters read what it runs."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._engine: SlurmEngine | None = None

    def engine(self, home: Home, find: Find, environment: Environment, since: float) -> Host:
        self._engine = SlurmEngine(
            home,
            find,
            environment,
            self._settings(),
            self._reading(home),
            since=since,
            limit_seconds=self._config.slurm.limit_seconds,
        )
        return self._engine

    def meters(self, home: Home, now: Callable[[], float]) -> Reader:  # noqa: ARG002 - all is in Slurm
        assert self._engine is not None
        limit = self._config.slurm.limit_seconds
        slurm = connect(self._settings(), limit_seconds=limit, read_only=True)
        return SlurmMeters(slurm, self._engine.numbers, now)

    def team_of(self, user: str, account: str) -> str:
        """The team that is called as the account; otherwise the user's own, where teams are written down."""
        if not self._config.team or account in self._config.team:
            return account or ROOT
        mine = self._config.teams_of(user)
        return mine[0] if mine else ROOT

    def _settings(self) -> SlurmSettings:
        table = self._config.slurm
        return SlurmSettings(
            mode=table.decide,
            observe=table.observe,
            conf=table.conf or "",
            rest=table.rest or "",
            rest_token=table.rest_token or "",
            partition=table.partition or "",
            account=table.account or "",
            qos=table.qos or "",
            options=table.options,
            soon_seconds=table.soon_seconds,
            period_seconds=table.period_seconds,
        )

    def _reading(self, home: Home) -> ReadingOthers:
        stands = all_standing(read_standing(home, self._config.node.layout))
        return ReadingOthers(team_of=self.team_of, charter_in=charter_in, stands=stands)


class SlurmMeters:
    """One question for all attempts. While Slurm does not answer, nothing is known of any.

    Slurm asks every node for it: where that takes long, it is asked less often.
    """

    def __init__(
        self,
        slurm: Slurm,
        numbers: Callable[[Sequence[Key]], Mapping[Key, Sequence[int]]],
        now: Callable[[], float],
    ) -> None:
        self._slurm, self._numbers, self._now = slurm, numbers, now
        self._rests_until = 0.0  # in monotonic time
        self.silent: dict[str, float] = {}

    def read(self, attended: Sequence[Attended]) -> Readings:
        found = self._shown([(one.job, one.attempt) for one in attended])
        at, since_boot = self._now(), time.clock_gettime(time.CLOCK_BOOTTIME)
        readings = [
            _reading(one, found[one.job, one.attempt], at, since_boot)
            for one in attended
            if (one.job, one.attempt) in found
        ]
        return Readings(tuple(readings), NodeReading(at=at))

    def _shown(self, keys: Sequence[Key]) -> Mapping[Key, Shown]:
        begun = time.monotonic()
        if not keys or begun < self._rests_until:
            return {}
        try:
            found = shown(self._slurm, self._numbers(keys))
        except SlurmError:
            self.silent = {_METER: self.silent.get(_METER, self._now())}
            return {}
        ended = time.monotonic()
        self._rests_until = ended + _TIMES_AS_LONG * (ended - begun)
        self.silent = {}
        return found


def _reading(one: Attended, found: Shown, at: float, since_boot_seconds: float) -> Reading:
    return Reading(
        job=one.job,
        attempt=one.attempt,
        at=at,
        since_boot_seconds=since_boot_seconds,
        cpu_seconds=found.cpu_seconds,
        memory_bytes=found.memory_bytes,
        memory_peak_bytes=found.memory_peak_bytes,
        gpus=tuple(GpuShown(device) for device in one.devices),
    )
