"""Standing on a cluster that Slurm runs."""

from collections.abc import Callable, Sequence

from muster.application.adopting import charter_in
from muster.engines.base import Host
from muster.engines.slurm.client import Slurm
from muster.engines.slurm.moves import Reading
from muster.engines.slurm.observer import Observer
from muster.home import Home
from muster.model.tenancy import ROOT
from muster.model.usage import NodeReading
from muster.monitor.meters.gather import Attended, Readings
from muster.server.config_tables import Config
from muster.server.footing import Environment, Find
from muster.server.footing import Reader as MeterReader
from muster.server.standing import all_standing, read_standing


class SlurmFooting:
    """The cluster that ``[slurm]`` speaks of."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def engine(self, home: Home, find: Find, environment: Environment, since: float) -> Host:  # noqa: ARG002
        table = self._config.slurm
        slurm = Slurm(table.conf, limit_seconds=table.limit_seconds)
        return Observer(
            home,
            slurm,
            Reading(
                team_of=self.team_of,
                charter_in=charter_in,
                stands=all_standing(read_standing(home, self._config.node.layout)),
                notices=slurm.notices,
            ),
            since=since,
            period_seconds=table.period_seconds,
            read_only=table.observe,
        )

    def meters(self, home: Home, now: Callable[[], float]) -> MeterReader:  # noqa: ARG002
        return NoMeters(now)

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
