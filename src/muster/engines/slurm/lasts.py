"""What attempts had used when they ended, from accounting: for who was too short to be measured as well.

Slurm has it from the kernel, to the millisecond. It is asked once in a pass, for all that ended in it. An end
is told without, if accounting does not answer or has not heard of it yet: to be told late is worse.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from muster.engines.base import Key
from muster.engines.slurm.client import MOST_IDS, Slurm
from muster.engines.slurm.errors import SlurmError
from muster.model.events import Event, Exited
from muster.model.usage import AtEnd

_RESTS_SECONDS = 60.0  # after accounting has not answered


def ended(facts: Iterable[Event]) -> list[Key]:
    return [(fact.job, fact.attempt) for fact in facts if isinstance(fact, Exited)]


def with_use(facts: Iterable[Event], spent: Mapping[Key, AtEnd]) -> list[Event]:
    return [
        replace(fact, at_end=spent.get((fact.job, fact.attempt))) if isinstance(fact, Exited) else fact
        for fact in facts
    ]


class Lasts:
    def __init__(self, slurm: Slurm) -> None:
        self._slurm = slurm
        self._rests_until = 0.0

    def of(self, numbers: Mapping[Key, Sequence[int]]) -> dict[Key, AtEnd]:
        """Of those whose jobs are all in accounting's books, as over."""
        asked = list(chain.from_iterable(numbers.values()))[:MOST_IDS]
        if not asked or time.monotonic() < self._rests_until:
            return {}
        try:
            spent = self._slurm.spent(asked)
        except SlurmError:
            self._rests_until = time.monotonic() + _RESTS_SECONDS
            return {}
        found = ((key, [spent.get(number) for number in each]) for key, each in numbers.items())
        return {key: _summed(each) for key, each in found if each and None not in each}


def _summed(parts: Iterable[AtEnd | None]) -> AtEnd:
    known = [one for one in parts if one is not None]
    return AtEnd(sum(one.cpu_seconds for one in known), max(one.largest_bytes for one in known))
