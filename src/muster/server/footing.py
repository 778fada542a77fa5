"""What the server stands on: an engine and its meters. All else is the same, whatever runs the jobs."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from muster.engines.base import Host, Key
from muster.engines.local import inventory
from muster.engines.local.engine import LocalEngine
from muster.home import Home
from muster.model.errors import BadInput
from muster.model.job import Job, JobId
from muster.model.node import Node
from muster.model.units import show_count
from muster.monitor.agents.board import Said
from muster.monitor.agents.message import Heard, Told
from muster.monitor.meters.gather import Attended, Meters, Readings
from muster.server.config_tables import Config, Machine
from muster.server.standing import read_standing, stood
from muster.store.fold import Fold

log = logging.getLogger("muster")

Find = Callable[[JobId], Job]
Environment = Callable[[str], dict[str, str]]


class Reader(Protocol):
    """Meters: one look at all attempts, and which of them do not answer."""

    @property
    def silent(self) -> dict[str, float]: ...

    def read(self, attended: Sequence[Attended]) -> Readings: ...


@runtime_checkable
class Hears(Protocol):
    """Meters that are told by agents on the nodes, as well."""

    def hear(self, told: Told) -> Heard:
        """One look of an agent. Raises ``BadInput`` for what can't be."""
        ...

    def said(self) -> Mapping[str, Said]:
        """By node, when its agent spoke last."""
        ...

    def speaking(self, attempt: Key, nodes: Sequence[str]) -> int:
        """On how many of these nodes an agent looks at the attempt."""
        ...


class Footing(Protocol):
    """Makes an engine, once the journal is folded, and the meters that can read what it runs."""

    def engine(self, home: Home, find: Find, environment: Environment, since: float) -> Host:
        """``find`` knows the jobs, ``environment`` their variables; no time before ``since`` is told."""
        ...

    def meters(self, home: Home, now: Callable[[], float]) -> Reader: ...

    def configure(self, home: Home, config: Config) -> None:
        """The configuration is another. What an engine was started with stays."""
        ...


def settle(home: Home, engine: str, fold: Fold) -> None:
    """Jobs stay where they run: one engine knows nothing of another's, and would start them a second time."""
    before = home.engine.read_text().strip() if home.engine.exists() else "local"
    if before != engine and (bound := _bound(fold)):
        raise BadInput(
            f"the engine {before} has {show_count(bound, 'job')} of this home, of which {engine} would know "
            f"nothing: start Muster with --engine {before}, "
            "or give this one a home of its own with MUSTER_HOME"
        )
    home.engine.write_text(f"{engine}\n")


def _bound(fold: Fold) -> int:
    """How many jobs an engine has: those that it runs, and those of its own queue."""
    waiting = (record.waiting for record in fold.records.values())
    adopted = sum(1 for entry in waiting if entry is not None and entry.job.adopted is not None)
    return fold.running_count + adopted


class LocalFooting:
    """This machine."""

    def __init__(self, config: Config) -> None:
        self._config = config

    def engine(self, home: Home, find: Find, environment: Environment, since: float) -> Host:
        return LocalEngine(home, find, environment, node=self._node(home), since=since)

    def meters(self, home: Home, now: Callable[[], float]) -> Reader:
        return Meters(home.path, now=now)

    def configure(self, home: Home, config: Config) -> None:
        """All of it was needed at the start."""

    def _node(self, home: Home) -> Node | None:
        """The machine as the configuration and the layout have it; None: as it is found."""
        table = self._config.node
        layout = read_standing(home, table.layout)
        if table == Machine() and layout is None:
            return None
        node = table.applied_to(inventory.here(home.path).node)
        if layout is None:
            return node
        node, said = stood(node, layout)
        for sentence in said:
            log.warning("%s", sentence)
        return node
