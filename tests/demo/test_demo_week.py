"""The simulated week: the same for the same seed, and with something to see on every page."""

from collections import Counter

import pytest

from muster.demo import story
from muster.demo.past import Past
from muster.demo.people import LEFT, TEAMS, configuration
from muster.demo.sites import nodes_of, read_site
from muster.demo.usage import usage_of
from muster.demo.week import relive
from muster.home import Home
from muster.model.charter import Verdict
from muster.model.events import ArraySubmitted, Found, Outcome, Submitted
from muster.model.ledger import span_of
from muster.model.node import Health
from muster.model.units import WEEK
from muster.server.config import parse_config
from muster.server.config_tables import Config
from muster.store.fold import Fold

NOW = 1_763_200_000.0  # a Saturday morning
NODES = nodes_of(read_site("delta"), story.UNSEEN)
VISITOR = "somebody"


def config() -> Config:
    return parse_config(configuration(400, NOW, VISITOR), "muster.toml")


def week(seed: int = 1) -> Past:
    return relive(NODES, config(), Home("/nowhere"), NOW, seed, VISITOR)


@pytest.fixture(scope="module")
def past() -> Past:
    return week()


def test_two_weeks_of_one_seed_are_the_same_and_those_of_two_are_not(past: Past) -> None:
    again = week()
    assert again.events == past.events
    assert again.ended == past.ended
    assert week(seed=2).events != past.events


def test_what_happened_folds_to_what_is_there(past: Past) -> None:
    fold = Fold(config().policy())
    for event in past.events:
        fold.apply(event)
    assert fold.running == past.fold.running
    assert NOW - WEEK <= past.events[0].at <= past.events[-1].at <= NOW


def test_the_map_has_every_state(past: Past) -> None:
    held = Counter[str]()
    for running in past.fold.running.values():
        habit = past.kind_of(running.job.id).habit
        state = "silent" if habit.is_silent else "working" if habit.busy > 0.05 else "idle"
        held[state] += running.held.gpus_milli
    down = [node for node in past.fold.nodes.values() if node.health is Health.DOWN]
    drained = [node for node in past.fold.nodes.values() if node.health is Health.DRAINED]
    assert 200_000 <= held["working"] <= 320_000
    assert 40_000 <= held["idle"] <= 80_000
    assert 4_000 <= held["silent"] <= 10_000
    assert (len(down), len(drained)) == (3, 1)
    assert all(node.because for node in (*down, *drained))
    assert sum(len(node.devices) for node in NODES) == 399
    assert [d.because for node in past.fold.nodes.values() for d in node.devices if not d.healthy] != []


def test_those_who_wait_do_so_for_many_reasons(past: Past) -> None:
    lanes = [lane[0] for lane in past.fold.lanes.values()]
    waits = [past.plan.wait_of(one, past.fold.unmet) for one in (*lanes, *past.fold.ineligible.values())]
    reasons = {type(wait.reasons[0]).__name__ for wait in waits if wait is not None}
    assert len(reasons) >= 5
    assert 15 <= past.fold.waiting_count <= 45


def test_work_has_won_lost_failed_and_was_stopped(past: Past) -> None:
    verdicts = {row.verdict for row in past.ended}
    assert {Verdict.WON.value, Verdict.LOST.value, Verdict.UNDEFENDED.value} <= verdicts
    assert Outcome.FAILED.value in {row.outcome for row in past.ended}
    assert past.fold.stewardship.reviews.current is not None
    assert past.fold.stewardship.reviews.last is not None
    assert "Review 1" in past.fold.stewardship.reviews.last.minutes


def test_the_steward_has_warned_of_idle_work_and_the_visitor_was_told(past: Past) -> None:
    assert "warn" in {event.act for event in past.events if isinstance(event, Found)}
    assert past.fold.mailboxes.of(VISITOR).open >= 1


def test_every_owner_is_known_or_has_left(past: Past) -> None:
    people = {*LEFT, VISITOR, *(name for team in TEAMS for name in team.people)}
    jobs = [event.job for event in past.events if isinstance(event, Submitted)]
    jobs += [event.template for event in past.events if isinstance(event, ArraySubmitted)]
    assert {job.owner for job in jobs} <= people
    assert {job.team for job in jobs} == {team.name for team in TEAMS}


def test_no_more_was_measured_than_was_held(past: Past) -> None:
    usage = usage_of(past, NOW)
    entries = {entry.key: entry for entry in usage.entries}
    assert len(entries) == len(past.keys)
    for hour in usage.hours:
        first, last = span_of(entries[hour.key], hour.rollup.start, hour.rollup.start + 3600)
        assert hour.rollup.measured_seconds <= (last - first) / 1024
        assert all(stat is None or 0 <= stat.least <= stat.mean <= stat.most for stat in hour.rollup.gpu_busy)
    silent = [e for e in usage.entries if past.kind_of(e.job).habit.is_silent]
    assert silent
    assert all(entry.spent.seconds == 0 for entry in silent)
