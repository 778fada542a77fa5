"""The engine protocol: four verbs between Muster and whatever runs the jobs.

``observe`` gives facts as events; ``act`` carries out one action of a plan. Acting is idempotent by (job,
attempt): an action that was carried out already, or that speaks of an attempt which is over, does nothing.
An engine never decides: what it can't do, its capabilities say beforehand.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from muster.model.events import Event
from muster.model.node import Node
from muster.model.plan import Action


class Capabilities(msgspec.Struct, frozen=True):
    """What an engine can do."""

    evicts: bool = True
    shares_gpus: bool = True
    gangs: bool = True
    virtual_time: bool = False  # time passes only in ``observe``


class Engine(Protocol):
    """Anything that runs jobs on nodes. ``muster.engines.check`` tells whether it keeps the protocol."""

    @property
    def capabilities(self) -> Capabilities: ...

    def now(self) -> float:
        """The engine's time, in seconds. Never goes back."""
        ...

    def nodes(self) -> Sequence[Node]:
        """The inventory as it is now."""
        ...

    def observe(self, until: float | None = None) -> Sequence[Event]:
        """Wait until something has happened, at most until ``until``; return what, in order.

        An empty answer means that ``until`` was reached, or that nothing is left to wait for.
        """
        ...

    def act(self, action: Action) -> None:
        """Carry out an action. Returns at once; what comes of it is observed."""
        ...
