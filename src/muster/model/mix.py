"""The mix: what kinds of parts people ask for, learned from what has been submitted so far.

Placement uses it to judge what room is worth: room of a shape that nobody asks for is worth little.
The view changes only when the mix has grown by more than half, so that what is derived from it can be kept.
"""

from collections.abc import Callable
from typing import TypeVar

from muster.model.job import Shape

Kind = TypeVar("Kind")

_MOST_SHAPES = 4096


class Mix:
    """A frozen view: shapes with how often they were asked for, the most common first."""

    __slots__ = ("classes", "total", "version")

    def __init__(self, classes: tuple[tuple[Shape, int], ...], version: int = 0) -> None:
        self.classes = classes
        self.total = sum(n for _, n in classes)
        self.version = version

    def classes_by(
        self,
        alike: Callable[[Shape], Kind],
        part: float,
        always: Callable[[Kind], bool] | None = None,
    ) -> list[tuple[Kind, float]]:
        """The most common kinds that together make up ``part`` of all, and those wanted always."""
        counts: dict[Kind, int] = {}
        for shape, count in self.classes:
            kind = alike(shape)
            counts[kind] = counts.get(kind, 0) + count
        found: list[tuple[Kind, float]] = []
        covered = 0
        for kind, count in sorted(counts.items(), key=lambda kv: -kv[1]):
            if covered < part * self.total or (always is not None and always(kind)):
                found.append((kind, count / self.total))
            covered += count
        return found


EMPTY = Mix(())


class MixCounter:
    """Counts shapes; old ones fade when there are too many kinds."""

    __slots__ = ("_counts", "_seen", "_show_next", "_view")

    def __init__(self) -> None:
        self._counts: dict[Shape, int] = {}
        self._seen = 0
        self._show_next = 1
        self._view = EMPTY

    def saw(self, shape: Shape, count: int = 1) -> None:
        self._counts[shape] = self._counts.get(shape, 0) + count
        self._seen += count
        if len(self._counts) > _MOST_SHAPES:
            self._counts = {s: n // 2 for s, n in self._counts.items() if n > 1}
        if self._seen >= self._show_next:
            classes = sorted(self._counts.items(), key=lambda kv: -kv[1])
            self._view = Mix(tuple(classes), self._view.version + 1)
            self._show_next = 20 if self._seen < 20 else int(self._seen * 1.6) + 5

    def view(self) -> Mix:
        return self._view
