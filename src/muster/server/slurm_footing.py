"""Standing on a cluster that Slurm runs: its engine, and meters that hear agents and ask Slurm."""

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
from muster.monitor.agents.board import Board, Look, Said
from muster.monitor.agents.merge import BY_AGENTS
from muster.monitor.agents.message import Heard, Told
from muster.monitor.meters.gather import Attended, Readings
from muster.server.config_tables import Config
from muster.server.footing import Environment, Find, Reader
from muster.server.measured import BY_SLURM
from muster.server.standing import all_standing, read_standing

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
        return SlurmMeters(slurm, self._engine, now, self._config.monitor.period_seconds)

    def configure(self, home: Home, config: Config) -> None:
        """Whose team is whose, and where nodes stand, follow it from the next look on."""
        self._config = config
        if self._engine is not None:
            self._engine.stand(self._stands(home))

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
        return ReadingOthers(team_of=self.team_of, charter_in=charter_in, stands=self._stands(home))

    def _stands(self, home: Home) -> dict[str, tuple[str | None, str | None]]:
        return all_standing(read_standing(home, self._config.node.layout))


class SlurmMeters:
    """Agents where they speak; otherwise Slurm, in one question for all attempts.

    While Slurm does not answer, nothing is known of those. It asks every node for it: where that takes long,
    it is asked less often.
    """

    def __init__(
        self, slurm: Slurm, engine: SlurmEngine, now: Callable[[], float], period_seconds: float
    ) -> None:
        self._slurm, self._engine, self._now = slurm, engine, now
        self._board = Board(self._devices, now, period_seconds)
        self._rests_until = 0.0  # in monotonic time
        self.silent: dict[str, float] = {}

    def read(self, attended: Sequence[Attended]) -> Readings:
        numbers = self._engine.numbers([(one.job, one.attempt) for one in attended])
        told = self._board.read(attended, numbers)
        asked = {key: numbers[key] for key, one in told.items() if one is Look.NOBODY}
        shown = self._shown({key: of for key, of in asked.items() if self._engine.is_measured(key)})
        found = (self._reading(one, told, shown, asked) for one in attended)
        readings = tuple(reading for reading in found if reading is not None)
        return Readings(readings, NodeReading(at=self._now()), self._board.nodes())

    def _reading(
        self,
        one: Attended,
        told: Mapping[Key, Reading | Look],
        shown: Mapping[Key, Shown],
        asked: Mapping[Key, Sequence[int]],
    ) -> Reading | None:
        key = (one.job, one.attempt)
        by_agents = told.get(key)
        if isinstance(by_agents, Reading):
            return by_agents
        if key not in asked:
            return None
        gpus = self._board.gpus_of(one, asked[key])
        at, since_boot = self._now(), time.clock_gettime(time.CLOCK_BOOTTIME)
        if key in shown:
            return _reading(one, shown[key], gpus, at, since_boot)
        if self._engine.is_measured(key) or all(gpu.busy is None for gpu in gpus):
            return None
        # Slurm shows us nothing of it, and not all of its nodes have an agent: its GPUs, as far as told.
        return Reading(
            job=one.job, attempt=one.attempt, at=at, since_boot_seconds=since_boot, gpus=gpus, by=BY_AGENTS
        )

    def _shown(self, numbers: Mapping[Key, Sequence[int]]) -> Mapping[Key, Shown]:
        begun = time.monotonic()
        if not numbers or begun < self._rests_until:
            return {}
        try:
            found = shown(self._slurm, numbers)
        except SlurmError:
            self.silent = {BY_SLURM: self.silent.get(BY_SLURM, self._now())}
            return {}
        ended = time.monotonic()
        self._rests_until = ended + _TIMES_AS_LONG * (ended - begun)
        self.silent = {}
        return found

    # --- Agents -----------------------------------------------------------------------------------

    def hear(self, told: Told) -> Heard:
        return self._board.hear(told)

    def said(self) -> Mapping[str, Said]:
        return self._board.said()

    def speaking(self, attempt: Key, nodes: Sequence[str]) -> int:
        return self._board.speaking(nodes, self._engine.numbers([attempt]).get(attempt, ()))

    def _devices(self) -> Mapping[str, int]:
        return {node.name: len(node.devices) for node in self._engine.nodes()}


def _reading(
    one: Attended, found: Shown, gpus: tuple[GpuShown, ...], at: float, since_boot_seconds: float
) -> Reading:
    return Reading(
        job=one.job,
        attempt=one.attempt,
        at=at,
        since_boot_seconds=since_boot_seconds,
        cpu_seconds=found.cpu_seconds,
        memory_bytes=found.memory_bytes,
        memory_peak_bytes=found.memory_peak_bytes,
        gpus=gpus,
        by=BY_SLURM,
    )
