"""From what was told of one attempt, node by node, to one reading of it.

*Amounts* add up over nodes, and of *waits* the longest counts, as it is with parts on one machine. A group
that was removed and made again, as the steps of a job come and go on a node, counts from zero: what the one
before had counted stays with the attempt. So does what was counted on a node on which nothing of it is left.

*Time* is the mean of the moments at which the nodes were read. They look at different moments; while each
uses evenly, what was used in all between two means is exact.
"""

from collections.abc import Mapping

from muster.model.usage import Reading
from muster.monitor.meters.shown import AMOUNTS, WAITS, Longest, summed

BY_AGENTS = "agent"
_NOW = ("memory_bytes", "processes")  # what it has at a moment; the rest is counted
_COUNTED = tuple(name for name in (*AMOUNTS, *WAITS) if name not in (*_NOW, "memory_peak_bytes"))

Figures = dict[str, float | None]
Place = tuple[str, int]  # a node, and the number of a job there


class _Group:
    """What a job has used on a node, in all of the groups that it had there one after the other."""

    def __init__(self, incarnation: int) -> None:
        self._incarnation = incarnation
        self._left: Figures = dict.fromkeys(_COUNTED, 0)  # of those before
        self._last: Figures = {}

    def add(self, shown: Reading) -> Figures:
        if shown.attempt != self._incarnation:
            self._incarnation = shown.attempt
            self._left = {name: _plus(self._left[name], self._last.get(name)) for name in _COUNTED}
        figures: Figures = {name: getattr(shown, name) for name in (*AMOUNTS, *WAITS)}
        self._last = dict(figures)
        return self._with_left(figures)

    def after_the_end(self) -> Figures:
        """There is no group now: it has what it had counted, and holds nothing."""
        return self._with_left({**self._last, **dict.fromkeys(_NOW, 0)})

    def _with_left(self, figures: Figures) -> Figures:
        return {n: _plus(self._left[n], value) if n in _COUNTED else value for n, value in figures.items()}


def _plus(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


class Merged:
    """One attempt on its nodes, from look to look."""

    def __init__(self, job: str, attempt: int) -> None:
        self._job, self._attempt = job, attempt
        self._groups: dict[Place, _Group] = {}
        self._waits = {name: Longest() for name in WAITS}

    def read(self, shown: Mapping[Place, Reading | None], at: float, since_boot_seconds: float) -> Reading:
        """``shown``: of each place what is there; None: nothing is, and somebody has looked."""
        figures: dict[Place, Figures] = {}
        for place, one in shown.items():
            if one is not None:
                group = self._groups.setdefault(place, _Group(one.attempt))
                figures[place] = group.add(one)
            elif place in self._groups:
                figures[place] = self._groups[place].after_the_end()
        return Reading(
            job=self._job,
            attempt=self._attempt,
            at=at,
            since_boot_seconds=since_boot_seconds,
            by=BY_AGENTS,
            **self._over_all(figures),  # type: ignore[arg-type]
        )

    def _over_all(self, figures: Mapping[Place, Figures]) -> Figures:
        """Of nobody of whom anything was ever seen, nothing is known."""
        if len(figures) <= 1:
            return next(iter(figures.values()), {})
        found: Figures = {name: summed([one[name] for one in figures.values()]) for name in AMOUNTS}
        for name in WAITS:
            found[name] = self._waits[name].add({place: one[name] for place, one in figures.items()})
        return found
