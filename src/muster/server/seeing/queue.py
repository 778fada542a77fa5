"""The queue as people look at it: who waits, in which order, for what, and why. Pure.

The order is the scheduler's own (``outlook.world.in_turn``), worked out as far as it is worth: nobody counts
to a hundred thousand. Who comes later is listed by lane, without a position; who is in no turn at all, since
it is held, depends on another or waits for a time, comes last. Reasons are those of the last cycle, kept by
lane, so that counting them costs what differs and not what is queued. Nothing is simulated.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice

import msgspec

from muster.layout.ranges import fold_numbers
from muster.model.job import Gang, JobId, Part, Together
from muster.model.plan import Plan
from muster.model.policy import ROTATING, Policy
from muster.model.reasons import Infeasible, Reason
from muster.model.snapshot import Running, Snapshot, Waiting
from muster.model.state import State
from muster.model.units import MILLI, show_bytes, show_count
from muster.schedule.attained import ranked, waiting_contender
from muster.server.answers import ArrayView, ReasonView
from muster.server.outlook.world import apart, eligible, in_turn
from muster.server.seeing.queue_answers import QueueRow, QueueView, ReasonCount, Reserved

MOST_RANKED = 2000  # jobs whose place is worked out
_LINED_UP = "LinedUp"
_ELSEWHERE = "Elsewhere"  # in the queue of a host that is shared

Chosen = Callable[[str, str], bool]  # whether a team and an owner are asked about

_WORDS = {
    None: "came just now",
    _LINED_UP: "are next in line",
    _ELSEWHERE: "wait in the cluster's queue",
    "NoRoom": "wait for room",
    "NoRoomTogether": "wait for room close together",
    "OutOfService": "wait for what is out of service",
    "QuotaReached": "wait for their quota",
    "BehindPromise": "would delay another",
    "BehindOthers": "wait behind another",
    "MakingRoom": "wait until others have left",
    "NotYourTurn": "wait for their turn",
    "NotLookedAt": "are far behind",
    "HeldBack": "are held",
    "NotBefore": "wait for a time",
    "DependsOn": "wait for another job",
    "ArrayFull": "wait for their own array",
}
_NEVER = "can never run"
_WITHOUT_ROOM = frozenset({"HeldBack", "NotBefore", "DependsOn"})


class Line(msgspec.Struct, frozen=True):
    """All that is known of who waits."""

    snap: Snapshot
    plan: Plan
    policy: Policy
    now: float
    ahead: float  # of the wall's clock
    lined_up: Sequence[Running] = ()
    handed_over: Sequence[Running] = ()  # to a host that is shared, and not begun
    elsewhere: Callable[[Waiting | Running], str] = lambda _: ""  # why that host lets one wait
    chosen: Chosen | None = None  # None: everybody

    def takes(self, team: str, owner: str) -> bool:
        """Whether it is asked about them."""
        return self.chosen is None or self.chosen(team, owner)


def queue_view(line: Line, limit: int) -> QueueView:
    """The first rows, and what all wait for."""
    places = _places(line)
    counts = _counts(line)
    waiting = sum(counts.values())
    decided = chain(
        (_lined_up(one, line) for one in _taken(line.lined_up, line)),
        (_handed_over(group, line) for group in _arrays(_taken(line.handed_over, line))),
    )
    undecided = (_row(group, places, line) for group in _groups(line, places))
    rows = list(islice(chain(decided, undecided), limit))
    reasons = _told(counts)
    return QueueView(
        sentence=sentence_of(waiting, reasons, rows),
        at=line.now + line.ahead,
        waiting=waiting,
        reasons=reasons,
        ranked=places.ranked,
        jobs=rows,
        more=waiting - sum(row.count for row in rows),
    )


def _taken(some: Iterable[Running], line: Line) -> list[Running]:
    return [one for one in some if line.takes(one.job.team, one.job.owner)]


# --- Order -----------------------------------------------------------------------------------------------


class _Places(msgspec.Struct):
    """Who is where, as far as it was worked out."""

    order: list[Waiting]
    overall: dict[JobId, int]
    in_team: dict[JobId, int]

    @property
    def ranked(self) -> int:
        return len(self.order)


def _places(line: Line) -> _Places:
    order = list(islice(_in_turn(line), MOST_RANKED))
    overall = {waiting.job.id: place for place, waiting in enumerate(order, 1)}
    counts: Counter[str] = Counter()
    in_team = {}
    for waiting in order:
        counts[waiting.job.team] += 1
        in_team[waiting.job.id] = counts[waiting.job.team]
    return _Places(order, overall, in_team)


def _in_turn(line: Line) -> Iterator[Waiting]:
    snap = apart(line.snap)
    lanes = eligible(snap, line.now)
    if line.policy.order not in ROTATING:
        return in_turn(snap, line.policy, lanes, line.now)
    contenders = [waiting_contender(one) for lane in lanes.values() for one in lane]
    ranking = ranked(contenders, snap, line.policy, line.now)
    return (one.waiting for one in ranking.contenders if one.waiting is not None)


def _groups(line: Line, places: _Places) -> Iterator[list[Waiting]]:
    """Those in turn, then those behind, then those that are set apart; of an array's members all at once."""
    seen: set[object] = set()
    apart_by_age = sorted(line.snap.ineligible.values(), key=lambda w: (w.job.submitted_at, w.job.id))
    for waiting in chain(places.order, chain.from_iterable(line.snap.lanes.values()), apart_by_age):
        job = waiting.job
        if not line.takes(job.team, job.owner):
            continue
        key: object = job.id if job.array is None else (job.array.array, waiting.lane, job.held)
        if key not in seen:
            seen.add(key)
            yield [waiting] if job.array is None else _mates(waiting, line.snap)


def _mates(waiting: Waiting, snap: Snapshot) -> list[Waiting]:
    """Members of its array that wait as it does; it comes first."""
    place, held = waiting.job.array, waiting.job.held
    assert place is not None
    lane: Iterable[Waiting] = snap.lanes.get(waiting.lane, ())
    if waiting.job.id in snap.ineligible:
        lane = (one for one in snap.ineligible.values() if one.lane == waiting.lane)
    found = [
        one
        for one in lane
        if one.job.array is not None and one.job.array.array == place.array and one.job.held is held
    ]
    return [waiting, *(one for one in found if one is not waiting)]


def _arrays(some: Iterable[Running]) -> Iterator[list[Running]]:
    """Members of one array together, where its first is."""
    groups: dict[str, list[Running]] = {}
    for one in some:
        groups.setdefault(one.job.id if one.job.array is None else one.job.array.array, []).append(one)
    yield from groups.values()


# --- Counting --------------------------------------------------------------------------------------------


def _counts(line: Line) -> Counter[str | None]:
    """Jobs by what they wait for: their lane's reason, but for those that have one of their own."""
    counts: Counter[str | None] = Counter()
    plan, snap, own = line.plan, line.snap, line.plan.job_waits
    for key, jobs in snap.lanes.items():
        if not line.takes(key.team, key.owner):
            continue
        wait = plan.lane_waits.get(key)
        alone = [own[one.job.id] for one in jobs if one.job.id in own] if own else []
        counts[None if wait is None else _kind(wait.reasons[0])] += len(jobs) - len(alone)
        counts.update(_kind(one.reasons[0]) for one in alone)
    for waiting in snap.ineligible.values():
        if line.takes(waiting.job.team, waiting.job.owner):
            counts[_kind_apart(waiting, line)] += 1
    counts[_LINED_UP] += len(_taken(line.lined_up, line))
    counts[_ELSEWHERE] += len(_taken(line.handed_over, line))
    return counts


def _kind_apart(waiting: Waiting, line: Line) -> str | None:
    if waiting.job.adopted is not None:
        return _ELSEWHERE
    wait = line.plan.wait_of(waiting, line.snap.unmet)
    return None if wait is None else _kind(wait.reasons[0])


def _kind(reason: Reason) -> str:
    return type(reason).__name__


def _told(counts: Counter[str | None]) -> list[ReasonCount]:
    """Those of which there are most first."""
    found = [ReasonCount(kind, words_of(kind), jobs) for kind, jobs in counts.items() if jobs > 0]
    return sorted(found, key=lambda one: (-one.jobs, one.words))


def words_of(kind: str | None) -> str:
    """What those wait for that have this reason."""
    return _NEVER if kind in _INFEASIBLE else _WORDS.get(kind, "wait")


_INFEASIBLE = {kind.__name__ for kind in Infeasible.__subclasses__()}


# --- Rows ------------------------------------------------------------------------------------------------


def _row(group: Sequence[Waiting], places: _Places, line: Line) -> QueueRow:
    waiting = group[0]
    row = _row_of(waiting, line, State.HELD if waiting.job.held else State.QUEUED)
    if waiting.job.adopted is not None:
        row.reason = ReasonView(_ELSEWHERE, line.elsewhere(waiting))
        return _named(row, group)
    wait = line.plan.wait_of(waiting, line.snap.unmet)
    reason = None if wait is None else wait.reasons[0]
    row.position, row.team_position = places.overall.get(row.id), places.in_team.get(row.id)
    row.reason = None if reason is None else _reason(reason, row.id)
    row.ask_why = reason is None or not (reason.infeasible or _kind(reason) in _WITHOUT_ROOM)
    row.reserved = _reserved(row.id, line)
    return _named(row, group)


def _named(row: QueueRow, group: Sequence[Waiting | Running]) -> QueueRow:
    """After all members of an array that it stands for."""
    if len(group) == 1:
        return row
    indices = [one.job.array.index for one in group if one.job.array is not None]
    assert row.array is not None
    row.id, row.count = f"{row.array.id}_[{fold_numbers(indices)}]", len(indices)
    row.array = ArrayView(row.array.id, min(indices), max(indices), len(indices))
    return row


def _lined_up(running: Running, line: Line) -> QueueRow:
    """It is decided where it starts, and it waits still."""
    row = _row_of(running, line, State.QUEUED)
    row.reason = ReasonView(_LINED_UP, f"is next in line for the seats of job {running.behind}")
    return row


def _handed_over(group: Sequence[Running], line: Line) -> QueueRow:
    """Muster has let it go; when it starts is the host's to say."""
    row = _row_of(group[0], line, State.STARTING)
    row.reason = ReasonView(_ELSEWHERE, line.elsewhere(group[0]))
    return _named(row, group)


def _row_of(entry: Waiting | Running, line: Line, state: State) -> QueueRow:
    job, asked = entry.job, entry.job.gang.asked()
    place = job.array
    return QueueRow(
        id=job.id,
        first=job.id,
        name=job.name,
        owner=job.owner,
        team=job.team,
        effort=job.effort,
        purpose=job.charter.purpose,
        priority=job.priority.name.lower(),
        state=state,
        count=1,
        array=None if place is None else ArrayView(place.array, place.index, place.index, 1),
        position=None,
        team_position=None,
        wants=wants_of(job.gang),
        gpus=asked.gpus_milli / MILLI,
        cpus=asked.cpus_milli / MILLI,
        memory_bytes=asked.memory_bytes,
        time_limit_seconds=job.time_limit_seconds,
        submitted_at=job.submitted_at + line.ahead,
        adopted=job.adopted,
        reason=None,
        estimate=None,
        reserved=None,
        ask_why=False,
    )


def _reason(reason: Reason, job_id: JobId) -> ReasonView:
    return ReasonView(_kind(reason), reason.sentence_of(job_id), reason.action_of(job_id))


def _reserved(job_id: JobId, line: Line) -> Reserved | None:
    promise = next((one for one in line.plan.promises if one.job == job_id), None)
    if promise is None:
        return None
    at = None if promise.starts_at is None else promise.starts_at + line.ahead
    return Reserved(at, list(dict.fromkeys(promise.nodes)), promise.firm)


# --- In words --------------------------------------------------------------------------------------------

_CLOSE = {
    Together.NODE: " on one node",
    Together.RACK: " in one rack",
    Together.SWITCH: " below one switch",
    Together.SPREAD: ", each part on a node of its own",
}


def wants_of(gang: Gang) -> str:
    """``16 × A40 in one rack``: GPUs if it wants any, else cpus and memory."""
    near = _CLOSE.get(gang.together, "") if gang.size > 1 else ""
    return " + ".join(map(_wants, gang.parts)) + near


def _wants(part: Part) -> str:
    shape, count = part.shape, part.count
    if shape.gpus and not shape.shares_gpu:
        model = " or ".join(shape.gpu_models) or "GPU"
        return f"{shape.gpus * count} × {model}"
    if shape.gpus:
        return f"{count} × {shape}" if count > 1 else str(shape)
    said = [show_count(shape.cpus_milli * count / MILLI, "cpu")] if shape.cpus_milli else []
    said += [f"{show_bytes(shape.memory_bytes * count)} memory"] if shape.memory_bytes else []
    return ", ".join(said) or "next to nothing"


def sentence_of(waiting: int, reasons: Sequence[ReasonCount], rows: Sequence[QueueRow]) -> str:
    """``22 jobs wait: 14 wait for room, …. Next in turn is 513 finetune-8b of ana: 16 × A40 in one rack.``"""
    if not waiting:
        return "Nothing waits."
    said = ", ".join(f"{one.jobs:,} {_agreeing(one)}" for one in reasons)
    jobs = "1 job is" if waiting == 1 else f"{waiting:,} jobs are"
    first = next((row for row in rows if row.position is not None), None)
    then = "" if first is None else f" Next in turn is {_whose(first)}: it wants {first.wants}."
    return f"{jobs} in the queue: {said}.{then}"


def _agreeing(one: ReasonCount) -> str:
    """``1 waits``, ``2 wait``."""
    verb, _, rest = one.words.partition(" ")
    return f"{_ALONE.get(verb, verb)} {rest}" if one.jobs == 1 else one.words


_ALONE = {"wait": "waits", "are": "is"}


def _whose(row: QueueRow) -> str:
    owner = f" of {row.owner}" if row.owner else ""
    return f"{row.id} {row.name}".rstrip() + owner
