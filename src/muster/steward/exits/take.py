"""How a report changes what is remembered.

- Of each source (a job; an effort has many) and metric: the last value, the newest step, the values at it.
- Of each source and test that has to last: for how many reports in a row it has, and since when.
- Of the subject as a whole and each metric that may stall: the best value of all sources, and since when no
  report was better.

A value **counts** unless it is *late* (its step is below the newest of that source and metric) or a
*duplicate* (the source has told the same value for the same step). What does not count changes nothing
here. Without a step nobody can tell, and every value counts. A best is always a finite number: an overflow
is no progress.

A **late** report is looked at by itself instead, and only by tests that have no time in them: whatever was
reached at that step would have ended the work had the report come in its turn, but when that was, and what
else was true then, nobody knows.
"""

import math
from collections.abc import Mapping

from muster.steward.exits.compiled import Exits
from muster.steward.exits.memory import MOST_NAMES, Best, Heard, Memory, Source, Streak
from muster.steward.exits.terms import Way

_MOST_AT_A_STEP = 8  # values told for one step that are known again
_STEP = "step"


def take(
    memory: Memory, exits: Exits, name: str, values: Mapping[str, float], step: float | None
) -> tuple[bool, Source | None]:
    """Enters a report. Whether any of it counts; and, if some of it is late, the report by itself."""
    if step is not None and not math.isfinite(step):
        step = None
    said = {metric: value for metric, value in values.items() if metric in exits.metrics}
    if step is not None and _STEP in exits.metrics:
        said.setdefault(_STEP, step)
    _note_names(memory, values, said)
    if not said:
        return False, None
    source = memory.sources.get(name)
    if source is None:
        source = memory.sources[name] = Source()
    counts = late = False
    for metric, value in said.items():
        heard = source.heard.get(metric)
        if heard is not None and step is not None and heard.newest is not None and step < heard.newest:
            late = True
        elif not _is_known(heard, value, step):
            counts = True
            source.heard[metric] = _entered(heard, value, memory.ran, step)
            _count(memory, exits, source, metric, value)
    alone = {metric: Heard(value, memory.ran, step) for metric, value in said.items()} if late else None
    return counts, None if alone is None else Source(alone)


def adopt(memory: Memory, exits: Exits) -> None:
    """Other exits from now on; what both have use for is kept."""
    tests = {look.key for looks in exits.streaks.values() for look in looks}
    goals = {look.key for looks in exits.goals.values() for look in looks}
    memory.bests = {key: best for key, best in memory.bests.items() if key in goals}
    for source in memory.sources.values():
        source.heard = {name: heard for name, heard in source.heard.items() if name in exits.metrics}
        source.streaks = {key: streak for key, streak in source.streaks.items() if key in tests}
    known = memory.names.union(*(source.heard for source in memory.sources.values()))
    memory.awaited = {name: memory.awaited.get(name, memory.ran) for name in sorted(exits.metrics - known)}
    memory.told &= memory.awaited.keys()


def _note_names(memory: Memory, values: Mapping[str, float], said: Mapping[str, float]) -> None:
    names = memory.names
    for metric in values:
        if metric not in names and len(names) < MOST_NAMES:
            names.add(metric)
    if memory.awaited:
        for metric in said:
            memory.awaited.pop(metric, None)


def _is_known(heard: Heard | None, value: float, step: float | None) -> bool:
    """Whether the same has been told for the same step."""
    if heard is None or step is None or step != heard.newest:
        return False
    return any(one == value or (one != one and value != value) for one in heard.told)


def _entered(heard: Heard | None, value: float, ran: float, step: float | None) -> Heard:
    if heard is None:
        return Heard(value, ran, step, step, () if step is None else (value,))
    heard.value, heard.at, heard.step = value, ran, step
    if step is not None and step != heard.newest:
        heard.newest, heard.told = step, (value,)
    elif step is not None:
        heard.told = (*heard.told[1 - _MOST_AT_A_STEP :], value)
    return heard


def _count(memory: Memory, exits: Exits, source: Source, metric: str, value: float) -> None:
    for test in exits.streaks[metric]:
        if not test.passes(value):
            source.streaks.pop(test.key, None)
        elif (streak := source.streaks.get(test.key)) is None:
            source.streaks[test.key] = Streak(1, memory.ran)
        else:
            streak.count += 1
    for goal in exits.goals[metric]:
        _strive(memory, goal.key, goal.way, value)


def _strive(memory: Memory, key: str, way: Way, value: float) -> None:
    best = memory.bests.get(key)
    finite = math.isfinite(value)
    if best is None:
        memory.bests[key] = Best(value if finite else None, memory.ran, 0 if finite else 1, memory.ran)
        return
    best.heard_at = memory.ran
    if finite and (best.value is None or (value > best.value if way is Way.RISING else value < best.value)):
        best.value, best.at, best.count = value, memory.ran, 0
    else:
        best.count += 1
