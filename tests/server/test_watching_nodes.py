"""Hardware is watched on every node that is read, each against what it showed before."""

from typing import cast

from muster.model.policy import Policy
from muster.model.usage import GpuReading, NodeReading
from muster.server.metering import Metering
from muster.server.watching import Acting, Watching
from muster.steward.rules import Rules
from muster.store.fold import Fold


class Place:
    """What is read of nodes, and what was done about it."""

    def __init__(self) -> None:
        self.shown: dict[str, NodeReading] = {}
        self.drained: list[tuple[str, int | None]] = []
        self.watching = Watching(Fold(Policy()), cast(Metering, self), Rules(), cast(Acting, self))

    def readings(self) -> dict[str, NodeReading]:
        return self.shown

    def quarantine(self, node: str, device: int | None, because: str) -> None:
        self.drained.append((node, device))

    def shows(self, at: float, **lost: bool) -> None:
        self.shown = {
            node: NodeReading(at=at, gpus=(GpuReading(index=0), GpuReading(index=1, lost=is_lost)))
            for node, is_lost in lost.items()
        }
        self.watching.look(at)


def test_a_device_that_is_lost_is_drained_on_the_node_that_it_is_in() -> None:
    place = Place()
    place.shows(1.0, a=False, b=False)
    place.shows(2.0, a=False, b=True)
    assert place.drained == [("b", 1)]


def test_a_node_that_nobody_reads_for_a_while_has_no_new_faults_when_it_is_back() -> None:
    place = Place()
    place.shows(1.0, a=True, b=False)
    place.shows(2.0, b=False)
    place.shows(3.0, a=True, b=False)
    assert place.drained == [("a", 1)]
