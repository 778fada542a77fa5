"""Standing on a cluster that Slurm runs: its engine, or one that only looks, and meters that ask Slurm."""

import time
from collections.abc import Callable, Mapping, Sequence

from muster.application.adopting import charter_in
from muster.engines.base import Host, Key
from muster.engines.slurm.client import Slurm
from muster.engines.slurm.engine import SlurmEngine
from muster.engines.slurm.errors import SlurmError
from muster.engines.slurm.meter import Shown, shown
from muster.engines.slurm.moves import Reading as ReadingOthers
from muster.engines.slurm.observer import Observer
from muster.engines.slurm.settings import SlurmSettings
from muster.home import Home
from muster.model.tenancy import ROOT
from muster.model.usage import GpuShown, NodeReading, Reading
from muster.monitor.meters.gather import Attended, Readings
from muster.server.config_tables import Config
from muster.server.footing import Environment, Find, Reader
from muster.server.standing import all_standing, read_standing

_METER = "slurm"
_LIMIT_SECONDS = 20.0


class SlurmFooting:
    """The cluster that ``[slurm]`` speaks of. The engine is made first; its meters read what it runs."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._engine: SlurmEngine | None = None

    def engine(self, home: Home, find: Find, environment: Environment, since: float) -> Host:
        table = self._config.slurm
        if table.observe:
            return self._observer(home, since)
        self._engine = SlurmEngine(
            home, find, environment, self._settings(), since=since, limit_seconds=table.limit_seconds
        )
        return self._engine

    def _observer(self, home: Home, since: float) -> Observer:
        table = self._config.slurm
        slurm = Slurm(table.conf, limit_seconds=table.limit_seconds)
        reading = ReadingOthers(
            team_of=self.team_of,
            charter_in=charter_in,
            stands=all_standing(read_standing(home, self._config.node.layout)),
            notices=slurm.notices,
        )
        return Observer(home, slurm, reading, since=since, period_seconds=table.period_seconds)

    def _settings(self) -> SlurmSettings:
        table = self._config.slurm
        return SlurmSettings(
            mode=table.decide,
            conf=table.conf or "",
            partition=table.partition or "",
            account=table.account or "",
            qos=table.qos or "",
            options=table.options,
            soon_seconds=table.soon_seconds,
        )

    def meters(self, home: Home, now: Callable[[], float]) -> Reader:  # noqa: ARG002 - all is in Slurm
        if self._engine is None:
            return NoMeters(now)
        slurm = Slurm(self._config.slurm.conf, limit_seconds=_LIMIT_SECONDS)
        return SlurmMeters(slurm, self._engine.numbers, now)

    def team_of(self, user: str, account: str) -> str:
        """The team that is called as the account; otherwise the user's own, where teams are written down."""
        if not self._config.team or account in self._config.team:
            return account or ROOT
        mine = self._config.teams_of(user)
        return mine[0] if mine else ROOT


class NoMeters:
    """Nobody reads what jobs use on other machines: that is unknown, which counts as busy."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    @property
    def silent(self) -> dict[str, float]:
        return {}

    def read(self, attended: Sequence[Attended]) -> Readings:  # noqa: ARG002
        return Readings((), NodeReading(at=self._now()))


class SlurmMeters:
    """One question for all attempts. While Slurm does not answer, nothing is known of any."""

    def __init__(
        self, slurm: Slurm, numbers: Callable[[Sequence[Key]], Mapping[Key, int]], now: Callable[[], float]
    ) -> None:
        self._slurm, self._numbers, self._now = slurm, numbers, now
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
        try:
            found = shown(self._slurm, self._numbers(keys)) if keys else {}
        except SlurmError:
            self.silent = {_METER: self.silent.get(_METER, self._now())}
            return {}
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
