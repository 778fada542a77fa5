"""Stuck: busy or not, and no progress.

Progress is what the charter names: reports, log output, checkpoints. The silence must outlast both a window
and several times the longest silence before it: so a log that comes in bursts, epoch by epoch, is taken as it
is. No meter is asked, since a deadlock may keep every GPU and cpu busy.

If the charter names nothing, whatever the attempt has shown so often and so long that it is a habit counts,
and then more is asked. Who never had one is not condemned for silence: a job that prints its head and then
computes for a day is common. Nor is who prepared with many words and works in silence; that it works harder
than when it last spoke tells the one from the other, and where no meter can tell, nothing is found.
"""

from typing import NamedTuple

from muster.model.usage import Rollup
from muster.steward.findings import Finding, NoProgress
from muster.steward.rules import Rules
from muster.steward.watch import Sign, Watched


class _Silence(NamedTuple):
    signs: list[Sign]  # any of which would have ended it
    longest_seconds: float  # that was usual
    window_seconds: float
    named: bool


def find_stuck(watched: Watched, rules: Rules, now: float) -> Finding | None:
    silence = _named(watched, rules) if watched.job.charter.progress else _habitual(watched, rules)
    if silence is None or watched.is_suspended:
        return None
    since = _since(watched, silence.signs)
    if now - since <= max(silence.window_seconds, rules.stuck_intervals * silence.longest_seconds):
        return None
    if not silence.named and _has_moved_on(watched, rules, since):
        return None
    return _finding(watched, silence, since, now - since)


def stuck_window_seconds(watched: Watched, rules: Rules) -> float:
    """The shortest silence that counts."""
    kinds = watched.job.charter.progress
    is_known = any(sign.count > 1 for sign in watched.signs if sign.kind in kinds)
    return rules.stuck_seconds if is_known else rules.stuck_unsure_seconds


def _finding(watched: Watched, silence: _Silence, since: float, seconds: float) -> Finding:
    kinds = tuple(sign.kind for sign in silence.signs)
    evidence = NoProgress(kinds, seconds, silence.window_seconds, silence.longest_seconds, silence.named)
    return Finding(
        kind="stuck",
        job=watched.job.id,
        attempt=watched.attempt,
        since=since,
        seconds=seconds,
        evidence=(evidence,),
        held=watched.held,
        devices=watched.devices,
        sure=silence.named,
    )


def _since(watched: Watched, signs: list[Sign]) -> float:
    """Since when it has been silent, as far as somebody has listened, and it could speak."""
    heard = (max(sign.last_at or 0.0, sign.watched_from) for sign in signs)
    return max(watched.began_at, *heard)


def _usual_seconds(watched: Watched, sign: Sign) -> float:
    """How far apart they have been, or, of checkpoints, how far apart the job itself says they are."""
    checkpoint = watched.job.checkpoint
    if checkpoint is None or sign.kind != "checkpoint":
        return sign.longest_seconds
    return max(sign.longest_seconds, checkpoint.every_seconds)


# --- What the charter names -----------------------------------------------------------------------------


def _named(watched: Watched, rules: Rules) -> _Silence | None:
    """If nobody looks for one of what it names, nothing is known."""
    kinds = watched.job.charter.progress
    signs = [sign for sign in watched.signs if sign.kind in kinds]
    if {sign.kind for sign in signs} != set(kinds):
        return None
    longest = max(_usual_seconds(watched, sign) for sign in signs)
    return _Silence(signs, longest, stuck_window_seconds(watched, rules), True)


# --- Habits ---------------------------------------------------------------------------------------------


def _habitual(watched: Watched, rules: Rules) -> _Silence | None:
    """The silence of all that was ever shown, if the last to be shown is a habit.

    It is the last one's rhythm that counts: a log that fell quiet by design says nothing about the
    checkpoints that go on after it.
    """
    shown = [sign for sign in watched.signs if sign.last_at is not None]
    last = max(shown, key=lambda sign: sign.last_at or 0.0, default=None)
    if last is None or not _is_habit(last, rules):
        return None
    return _Silence(shown, _usual_seconds(watched, last), stuck_window_seconds(watched, rules), False)


def _is_habit(sign: Sign, rules: Rules) -> bool:
    if sign.first_at is None or sign.last_at is None:
        return False
    return sign.count >= rules.habit_signs and sign.last_at - sign.first_at >= rules.habit_seconds


def _has_moved_on(watched: Watched, rules: Rules, since: float) -> bool:
    """Whether it does something else than when it last spoke, or may, for all that is known."""
    begin = since - rules.habit_seconds
    before = _work(watched, [m for m in watched.minutes if begin <= m.start < since])
    after = _work(watched, [m for m in watched.minutes if m.start >= since])
    if before is None or after is None:
        return True
    least = rules.gpu_busy if watched.devices else rules.cpus
    return after >= rules.phase * max(before, least)


def _work(watched: Watched, minutes: list[Rollup]) -> float | None:
    """How hard its GPUs worked; its cpus, if it has none. None: not known."""
    worked = [_worked(watched, minute) for minute in minutes]
    known = [work for work in worked if work is not None]
    return sum(known) / len(known) if 2 * len(known) > len(minutes) else None


def _worked(watched: Watched, minute: Rollup) -> float | None:
    if not watched.devices:
        return None if minute.cpus is None else minute.cpus.mean
    known = [stat.mean for stat in minute.gpu_busy if stat is not None]
    return sum(known) if known and len(known) == len(watched.devices) else None
