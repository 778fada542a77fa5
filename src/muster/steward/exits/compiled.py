"""The exits of a charter, ready to be looked at with every report.

A charter keeps its conditions as text; they are compiled when they are needed, and what was compiled is
remembered. Success comes before failure, so that a report that meets both ends the work as won.
"""

import functools
from collections.abc import Iterable
from typing import Literal, TypeVar

import msgspec

from muster.model.charter import Charter
from muster.model.errors import BadInput
from muster.steward.exits.direction import way_of
from muster.steward.exits.looks import Look, StallLook, ValueLook, look_at
from muster.steward.exits.parse import parse_condition
from muster.steward.exits.terms import AllOf, AnyOf, Condition, Stalls, show_name

Verdict = Literal["won", "lost"]
_Leaf = TypeVar("_Leaf", ValueLook, StallLook)


class Exit:
    """One condition, and how the work has ended when it is met."""

    __slots__ = ("condition", "is_shared", "look", "text", "verdict")

    def __init__(self, verdict: Verdict, text: str, condition: Condition) -> None:
        self.verdict: Verdict = verdict
        self.text = text
        self.condition = condition  # every stall in it knows its way
        self.look: Look = look_at(condition)
        # Whether one source's report may make it hold for another: the best is everybody's.
        self.is_shared = verdict == "won" and any(isinstance(leaf, StallLook) for leaf in self.look.leaves())


class Exits:
    """All exits of a charter. What has to be kept of each metric is gathered here, once."""

    __slots__ = ("exits", "goals", "metrics", "streaks", "timed")

    def __init__(self, exits: tuple[Exit, ...] = ()) -> None:
        leaves = [leaf for one in exits for leaf in one.look.leaves()]
        self.exits = exits
        self.metrics = frozenset(leaf.metric for leaf in leaves)
        self.timed = tuple(leaf for leaf in leaves if leaf.is_timed)
        stalls = [leaf for leaf in leaves if isinstance(leaf, StallLook)]
        lasting = [leaf for leaf in leaves if isinstance(leaf, ValueLook) and leaf.lasts]
        # By metric: the tests that have to last, and what has to get better.
        self.streaks = {m: _each(look for look in lasting if look.metric == m) for m in self.metrics}
        self.goals = {m: _each(look for look in stalls if look.metric == m) for m in self.metrics}

    @property
    def success(self) -> tuple[Exit, ...]:
        return tuple(one for one in self.exits if one.verdict == "won")

    @property
    def failure(self) -> tuple[Exit, ...]:
        return tuple(one for one in self.exits if one.verdict == "lost")


def _each(looks: Iterable[_Leaf]) -> tuple[_Leaf, ...]:
    """One for each key: what is remembered under it is the same."""
    return tuple({look.key: look for look in looks}.values())


def exits_of(charter: Charter) -> Exits:
    """The exits that a charter names."""
    return compiled(charter.success, charter.failure)


@functools.lru_cache(maxsize=4096)
def compiled(success: tuple[str, ...], failure: tuple[str, ...]) -> Exits:
    """``BadInput`` names a condition that is none, or a stall of which nobody can tell what better is."""
    won = tuple(map(parse_condition, success))
    lost = tuple(map(parse_condition, failure))
    return Exits(
        (
            *(Exit("won", text, _resolved(c, text, won, lost)) for text, c in zip(success, won, strict=True)),
            *(
                Exit("lost", text, _resolved(c, text, won, lost))
                for text, c in zip(failure, lost, strict=True)
            ),
        )
    )


def _resolved(
    condition: Condition, text: str, won: tuple[Condition, ...], lost: tuple[Condition, ...]
) -> Condition:
    """The same, with a way for each stall that left it open."""
    if isinstance(condition, AllOf | AnyOf):
        return type(condition)(tuple(_resolved(part, text, won, lost) for part in condition.of))
    if not isinstance(condition, Stalls) or condition.way is not None:
        return condition
    way = way_of(condition.metric, won, lost)
    if way is None:
        name = show_name(condition.metric)
        raise BadInput(
            f"'{text}' leaves open whether more or less of {name} is better; "
            f"write '{name} stops rising' or '{name} stops falling' instead"
        )
    return msgspec.structs.replace(condition, way=way)
