"""Passing muster: whether a job has an owner, a purpose that says something, and an end.

What it lacks may be supplied by the effort that it is part of. What follows is policy: *strict* refuses it,
*warn* lets it start and says that the next review will list it as undefended, *off* looks at nothing. A
purpose that was given and says nothing is refused by both that look: whoever wrote it should hear so while
they are there.

A time limit that was asked for is an end. One that everybody gets by default is none: nobody thought of it.
"""

import enum
from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from muster.model.charter import Charter
from muster.model.job import Job
from muster.model.units import HOUR
from muster.steward.purpose import says_nothing

Require = Literal["strict", "warn", "off"]
REQUIRES: tuple[Require, ...] = get_args(Require)
Question = Literal["for", "success", "give_up"]
_TRIFLE_SECONDS = HOUR
_ENDS = "--time, --until, --budget, --success or --fail"


class Lack(enum.StrEnum):
    """What a job needs to pass, and has not."""

    OWNER = "owner"
    PURPOSE = "purpose"
    END = "end"


_NAMED = {Lack.OWNER: "owner who is here", Lack.PURPOSE: "purpose", Lack.END: "end"}
_ADDED = {
    Lack.OWNER: "--owner NAME",
    Lack.PURPOSE: '--for "what you will know when it is done"',
    Lack.END: f"one of {_ENDS}",
}


class Judgement(msgspec.Struct, frozen=True):
    """How a job stands before the policy that counts for it."""

    require: Require
    lacks: tuple[Lack, ...] = ()
    empty: str | None = None  # why the purpose that was given says nothing
    is_trifle: bool = False  # somebody waits for it, and it is small
    asks: tuple[Question, ...] = ()  # what to ask who is at a terminal

    @property
    def refusal(self) -> str | None:
        """Why it may not start, and what would help, in a sentence."""
        if self.empty is not None:
            return self.empty
        if self.require != "strict" or not self.lacks:
            return None
        named = _joined(
            [f"an {_NAMED[lack]}" if lack != Lack.PURPOSE else "a purpose" for lack in self.lacks]
        )
        return f"nothing starts here without {named}; add {_joined([_ADDED[lack] for lack in self.lacks])}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What it lacks although it may start, and what comes of that: the same words for whatever job."""
        if self.require != "warn" or not self.lacks or self.is_trifle:
            return ()
        named = _joined([f"no {_NAMED[lack]}" for lack in self.lacks])
        how = _joined([_ADDED[lack] for lack in self.lacks])
        return (f"it has {named}, so the next review lists it as undefended; add {how}",)


def judge(
    job: Job,
    require: Require,
    *,
    effort: Charter | None = None,
    is_owned: bool = True,
    attended: bool = False,
) -> Judgement:
    """How a job stands, as it was asked for: a limit that it gets by default is not in it yet.

    ``effort``: the charter of the open effort that it is part of. ``is_owned``: its owner is there.
    ``attended``: somebody waits for it at a terminal, and will see it end.
    """
    if require == "off":
        return Judgement("off")
    charter, above = job.charter, effort or Charter()
    lacks: list[Lack] = []
    if not is_owned and above.owner is None:
        lacks.append(Lack.OWNER)
    if not (charter.purpose or above.purpose):
        lacks.append(Lack.PURPOSE)
    if not (charter.has_end or above.has_end or job.time_limit_seconds is not None):
        lacks.append(Lack.END)
    empty = says_nothing(charter.purpose, job.name, _command(job)) if charter.purpose else None
    is_trifle = attended and _is_small(job)
    asks = () if is_trifle and require == "warn" else _questions(charter, lacks, has_end=above.has_end)
    return Judgement(require, tuple(lacks), empty, is_trifle, asks)


def _questions(charter: Charter, lacks: Sequence[Lack], *, has_end: bool) -> tuple[Question, ...]:
    """Whoever is asked what it is for is asked how it ends, too, even if there is a time limit."""
    asks: list[Question] = ["for"] if Lack.PURPOSE in lacks else []
    if (Lack.PURPOSE in lacks or Lack.END in lacks) and not has_end:
        if not charter.success:
            asks.append("success")
        if not (charter.failure or charter.budget or charter.until is not None):
            asks.append("give_up")
    return tuple(asks)


def _is_small(job: Job) -> bool:
    limit = job.time_limit_seconds
    return not any(part.shape.gpus for part in job.gang.parts) and (limit is None or limit <= _TRIFLE_SECONDS)


def _command(job: Job) -> tuple[str, ...]:
    return job.run.argv if job.run is not None else ()


def _joined(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
