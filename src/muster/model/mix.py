"""The mix: what kinds of parts people ask for, learned from what has been submitted so far.

Placement uses it to judge what room is worth: room of a shape that nobody asks for is worth little.
The view changes only when the mix has grown by a tenth, so that answers derived from it can be kept.
"""

from muster.model.job import Shape

_MOST_SHAPES = 4096


class Mix:
    """A frozen view: shapes with how often they were asked for, the most common first."""

    __slots__ = ("classes", "total", "version")

    def __init__(self, classes: tuple[tuple[Shape, int], ...], version: int = 0) -> None:
        self.classes = classes
        self.total = sum(n for _, n in classes)
        self.version = version

    def common(self, part: float) -> list[tuple[Shape, float]]:
        """The most common shapes that together make up ``part`` of all, with their popularity."""
        found: list[tuple[Shape, float]] = []
        covered = 0
        for shape, count in self.classes:
            found.append((shape, count / self.total))
            covered += count
            if covered >= part * self.total:
                break
        return found


EMPTY = Mix(())


class MixCounter:
    """Counts shapes; old ones fade when there are too many kinds."""

    __slots__ = ("_counts", "_seen", "_shown_at", "_view")

    def __init__(self) -> None:
        self._counts: dict[Shape, int] = {}
        self._seen = 0
        self._shown_at = 0
        self._view = EMPTY

    def saw(self, shape: Shape, count: int = 1) -> None:
        self._counts[shape] = self._counts.get(shape, 0) + count
        self._seen += count
        if len(self._counts) > _MOST_SHAPES:
            self._counts = {s: n // 2 for s, n in self._counts.items() if n > 1}

    def view(self) -> Mix:
        if self._seen > self._shown_at * 1.1:
            classes = sorted(self._counts.items(), key=lambda kv: -kv[1])
            self._view = Mix(tuple(classes), self._view.version + 1)
            self._shown_at = self._seen
        return self._view
