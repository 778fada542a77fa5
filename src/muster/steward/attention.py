"""Attention: what is sent to a person now, and what waits.

People are interrupted by what can't wait, a few times a day at most; everything else comes in one digest a
day, and if there is nothing, nothing comes. A day is any 24 hours, by a clock that nobody sets: whoever sets
the one on the wall changes when a digest comes, and gets none twice.

Each channel of a person has its own state: what one has taken another may still owe.
"""

from collections.abc import Iterable

import msgspec

from muster.model.post import Letter, Mailbox
from muster.model.units import DAY, HOUR

_APART_SECONDS = 12 * HOUR  # two digests, however often somebody sets the clock or its time


class AttentionRules(msgspec.Struct, frozen=True):
    """The policy."""

    interruptions: int = 3  # a day, for each person


class Moments(msgspec.Struct, frozen=True):
    """The day as the wall has it, in our time."""

    digest_at: float  # the last moment at which digests were due
    quiet: bool = False  # nobody is to be interrupted now


class GaveUp(msgspec.Struct, frozen=True):
    """What a channel would not take, and when that was given up; the next digest tries again."""

    at: float
    numbers: frozenset[int]


class Send(msgspec.Struct, frozen=True):
    """Send these together: a digest, or one message by itself."""

    numbers: tuple[int, ...]
    digest: bool
    is_last: bool = False  # it is the last interruption of the day


def due(
    box: Mailbox,
    channel: str,
    rules: AttentionRules,
    moments: Moments,
    now: float,
    *,
    under_way: Iterable[int] = (),
    gave_up: GaveUp | None = None,
) -> Send | None:
    """What to send on this channel now; one thing at a time, as what follows depends on whether it arrived.

    ``under_way``: those by which the person is being interrupted on other channels.
    """
    waiting = [letter for letter in box.letters.values() if letter.is_due_on(channel)]
    if _digest_is_due(box, channel, waiting, moments, now, gave_up):
        numbers = {letter.number for letter in (*waiting, *box.questions())}
        return Send(tuple(sorted(numbers)), digest=True)
    if moments.quiet:
        return None
    given_up = frozenset() if gave_up is None else gave_up.numbers
    spent = [number for number, at in box.interruptions if now - at < DAY]
    spent += set(under_way) - set(spent)
    return _interruption([one for one in waiting if one.number not in given_up], channel, spent, rules)


def _digest_is_due(
    box: Mailbox, channel: str, waiting: list[Letter], moments: Moments, now: float, gave_up: GaveUp | None
) -> bool:
    """Its moment has come since the last one, and something waited for it then."""
    moment, last = moments.digest_at, box.digests.get(channel)
    if not any(letter.changed_at <= moment for letter in waiting):
        return False
    if gave_up is not None and gave_up.at >= moment:
        return False
    return last is None or (last < moment and now - last >= _APART_SECONDS)


def _interruption(
    waiting: list[Letter], channel: str, spent: list[int], rules: AttentionRules
) -> Send | None:
    """The first that can't wait. One that interrupted on another channel already costs nothing more."""
    left = rules.interruptions - len(spent)
    for letter in waiting:
        if not letter.message.urgent:
            continue
        if not letter.interrupted and letter.number not in spent:
            if left > 0:
                return Send((letter.number,), digest=False, is_last=left == 1)
        elif letter.number in spent and channel not in letter.delivered:
            return Send((letter.number,), digest=False)
    return None
