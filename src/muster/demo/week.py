"""The week behind the demonstration: put together, and written down as a server would have done it."""

import random
import threading
from collections.abc import Iterator
from functools import partial

import msgspec
from msgspec.structs import replace

from muster.demo import habits, story
from muster.demo.cast import WORKING
from muster.demo.cast_rest import IDLE, OVER, WAITING
from muster.demo.noticed import notice
from muster.demo.past import Past
from muster.demo.people import TEAMS, VISITOR
from muster.demo.roles import Role
from muster.demo.usage import usage_of
from muster.demo.work import USUAL, Kind, life_of
from muster.engines.sim import Life
from muster.home import Home
from muster.model.events import Started, TeamSet
from muster.model.job import After, Dependency, JobId
from muster.model.node import Node
from muster.model.report import Report
from muster.model.units import DAY, HOUR, MINUTE, WEEK
from muster.server.config import teams_to_set
from muster.server.config_tables import Config
from muster.server.stewardship.zones import zone_of
from muster.steward.review.calendar import next_close
from muster.store.journal import Journal
from muster.store.rows import Batch, ReportRow, StateKey

_NOTICED_SECONDS = 2 * HOUR  # ago, the steward looked for idle work
_SMALL_NODES = 100  # beyond what the story fills
_FILLED_SECONDS = 2 * HOUR  # ago, a large site was filled up
_FILLED = 0.78  # of its nodes
_NIGHT = 0.25  # of the submissions at noon, those at midnight


def relive(nodes: tuple[Node, ...], config: Config, home: Home, now: float, seed: int, visitor: str) -> Past:
    """All that happened in the week until now; the same for the same seed and moment."""
    begins_at = now - WEEK
    zone = zone_of(config.review.timezone)
    assert config.review.schedule is not None
    times = story.Times(begins_at, now, next_close(config.review.schedule, now + DAY, zone))
    past = Past(nodes, config.policy(), begins_at, home)
    for team in teams_to_set((), config):
        past.note(TeamSet(begins_at, team))
    is_small = len(nodes) <= _SMALL_NODES
    story.tell(past, times, visitor, is_small=is_small)
    if not is_small:
        past.at(now - _FILLED_SECONDS, partial(_fill, len(nodes)))
    for role in (*WORKING, *IDLE, *OVER, *WAITING):
        _play(past, role, times, visitor)
    _depend(past, times, visitor)
    luck = random.Random(seed)
    for kind in USUAL:
        for at in _arrivals(kind, begins_at, now, luck):
            owner = luck.choice(kind.owners)
            past.at(at, partial(_come, kind, _named(owner, visitor), f"{seed}/{kind.name}/{at:.0f}"))
    past.at(now - _NOTICED_SECONDS, notice)
    past.run(now)
    _exceed(past, visitor)
    return past


def _named(owner: str, visitor: str) -> str:
    return visitor if owner == VISITOR else owner


def _arrivals(kind: Kind, begins_at: float, now: float, luck: random.Random) -> Iterator[float]:
    """More by day than by night, and fewer at weekends than one thinks."""
    at = begins_at
    while True:
        at += luck.expovariate(kind.each_day * 1.6 / DAY)
        if at >= now - MINUTE:
            return
        hour = at % DAY / HOUR
        if luck.random() < (1.0 if 8 <= hour < 19 else _NIGHT):
            yield at


def _fill(nodes: int, past: Past) -> None:
    """A large site has more of the same: each team an array of whole nodes, of which some are idle."""
    for team in TEAMS:
        for habit, part in ((habits.TRAINER, 0.85), (habits.IDLE, 0.15)):
            kind = Kind(
                name=f"{team.name}-{'sweep' if habit.busy else 'held'}",
                team=team.name,
                owners=team.people,
                purpose="Fill a site that is too large to be told about." if habit.busy else None,
                gpus=4,
                members=max(1, round(team.share * part * _FILLED * nodes)),
                habit=habit,
                limit_hours=96.0,
            )
            past.submit(kind, team.people[-1], Life(60 * HOUR))


def _come(kind: Kind, owner: str, key: str, past: Past) -> None:
    past.submit(kind, owner, life_of(kind, key))


def _play(past: Past, role: Role, times: story.Times, visitor: str) -> None:
    owner = _named(role.owner, visitor)

    def begin(past: Past) -> None:
        job = past.submit(role.kind, owner, Life(role.hours * HOUR))
        if role.defended_hours_ago is not None:
            at = times.now - role.defended_hours_ago * HOUR
            until = times.now + 9 * DAY
            past.at(at, lambda p: story.defend(p, job, owner, role.defence, until))

    past.at(times.now - role.hours_ago * HOUR, begin)


def _depend(past: Past, times: story.Times, visitor: str) -> None:
    """What waits for others, for a moment, or for somebody's word."""
    kinds = {kind.name: kind for kind in USUAL}

    def do(past: Past) -> None:
        first = Dependency(past.named["finetune-8b"], After.OK)
        compare = replace(kinds["rerank"], name="compare-8b", purpose="8B against 3B, in one table.")
        second = past.submit(compare, "ana", Life(HOUR), after=(first,))
        figures = replace(
            kinds["lm-probe"], name="figures", purpose="The figures of the paper, from the runs."
        )
        past.submit(figures, "ana", Life(HOUR), after=(Dependency(second, After.OK),))
        tonight = replace(
            kinds["ensemble-member"], name="tonight", purpose="The forecast of tonight, at two."
        )
        past.submit(tonight, "wanjiru", Life(HOUR), begin_at=times.now + 6 * HOUR)
        kept = replace(
            kinds["vit-ablate"],
            name="wait-for-labels",
            purpose="With the corrected labels, once they are here.",
        )
        past.submit(kept, visitor, Life(HOUR), held=True)

    past.at(times.now - 0.8 * HOUR, do)
    grasp = kinds["grasp-sim"]
    for minutes in (70.0, 40.0, 20.0):
        past.at(times.now - minutes * MINUTE, partial(_come, grasp, "zofia", f"grasp {minutes}"))


def _exceed(past: Past, visitor: str) -> None:
    """The last word before now: of an effort whose budget is spent, as the server will find."""
    kind = next(kind for kind in USUAL if kind.name == "vit-ablate")
    more = replace(kind, name="cities-more", effort="city-seg", purpose="Seven more cities.")
    for _ in range(3):
        past.submit(more, visitor, Life(3 * HOUR))


# --- Writing down -----------------------------------------------------------------------------------------


def write_down(past: Past, store: str, now: float) -> None:
    """Into a store of its own, from which the server then starts as from any other."""
    journal = Journal.open(store)
    reports = list(_reports(past, now))
    batch = Batch(events=past.events, ended=past.ended, reports=reports, states=dict(_states(past, reports)))
    usage = usage_of(past, now)
    usage.seq = len(past.events)
    done = threading.Event()
    journal.write(batch, lambda _: None)
    journal.write(Batch(usage=usage), lambda _: done.set())
    done.wait()
    journal.close()


def _reports(past: Past, now: float) -> Iterator[ReportRow]:
    begun = {(e.job, e.attempt): e.at for e in past.events if isinstance(e, Started)}
    for key, started_at in begun.items():
        entry, kind = past.ledger.entry(*key), past.kind_of(key[0])
        if entry is None or kind.curve is None:
            continue
        until = now if entry.ended_at is None else entry.ended_at
        told = ((ran, values) for ran, values in past.reports_of(key[0]) if started_at + ran <= until)
        for number, (ran, values) in enumerate(told):
            report = Report(*key, started_at + ran, float(number + 1), values, "report")
            yield ReportRow(number, ran, report)


def _states(past: Past, reports: list[ReportRow]) -> Iterator[tuple[StateKey, bytes]]:
    """Of those that live: how many reports there were, how far their logs were read, the last values."""
    counts: dict[tuple[JobId, int], tuple[int, dict[str, float]]] = {}
    for row in reports:
        key = (row.report.job, row.report.attempt)
        counts[key] = (row.number + 1, row.report.values)
    for (job, attempt), (count, values) in counts.items():
        running = past.fold.running.get(job)
        if running is not None and running.attempt == attempt:
            yield (job, attempt, "reports"), msgspec.msgpack.encode((count, b"", values))
