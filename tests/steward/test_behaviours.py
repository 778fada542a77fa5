"""The labelled set: nobody who works is condemned, and the idle are found."""

from functools import cache
from pathlib import Path

import pytest

from bench.__main__ import run
from bench.behaviours import Behaviour, load, read
from bench.findings import STOPPING, Verdict, judge
from bench.played import Played
from muster.model.errors import BadInput
from muster.model.units import DAY, HOUR, MINUTE
from muster.steward.find import find
from muster.steward.respond import Handled, Note, Step, Warn, respond
from muster.steward.rules import Response, Rules

SET = load()
EVERY = 10 * MINUTE  # the bench looks every minute

played = cache(Played)


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    return [judge(played(behaviour), STOPPING, EVERY) for behaviour in SET]


def test_the_set_is_large_enough_to_mean_something() -> None:
    labels = [behaviour.truth.label for behaviour in SET]
    assert len(labels) >= 60
    assert min(labels.count("busy"), labels.count("idle")) >= 20
    assert labels.count("stuck") >= 10


def test_nobody_who_works_is_stopped_where_the_policy_is_to_stop(verdicts: list[Verdict]) -> None:
    assert [v.behaviour.name for v in verdicts if v.stopped] == []


def test_nobody_who_works_is_warned_but_those_that_nobody_can_know(verdicts: list[Verdict]) -> None:
    wronged = {v.behaviour.name for v in verdicts if v.wrongly}
    assert wronged == {b.name for b in SET if b.truth.wronged}
    assert len(wronged) <= 2


def test_all_are_found_but_those_that_nobody_can_know(verdicts: list[Verdict]) -> None:
    expected = [v for v in verdicts if v.behaviour.truth.label != "busy" or v.behaviour.truth.gpus]
    missed = {v.behaviour.name for v in expected if not v.found}
    assert missed == {v.behaviour.name for v in expected if v.behaviour.truth.missed}


def test_the_found_are_found_within_an_hour_of_the_first_chance(verdicts: list[Verdict]) -> None:
    late = {v.behaviour.name: v.late_seconds for v in verdicts if v.late_seconds is not None}
    assert {name for name, seconds in late.items() if seconds > HOUR + EVERY} == set()
    assert {name for name, seconds in late.items() if seconds < -5 * MINUTE} == set()  # a blip is passed over


STRICT = Response("stop", warnings=1, between_seconds=0.0, grace_seconds=EVERY)


def test_under_a_policy_without_patience_the_busy_go_on() -> None:
    for behaviour in (one for one in SET if one.truth.label == "busy" and not one.truth.wronged):
        steps = _answered(behaviour, Rules(on_idle=STRICT, on_stuck=STRICT))
        assert {type(step) for step in steps} <= {Note}, behaviour.name


def test_on_one_machine_nobody_is_told_more_than_twice() -> None:
    for behaviour in (one for one in SET if one.truth.label != "busy"):
        warnings = [step for step in _answered(behaviour, Rules()) if isinstance(step, Warn)]
        assert len(warnings) <= 2, behaviour.name


def _answered(behaviour: Behaviour, rules: Rules) -> list[Step]:
    one, steps = played(behaviour), list[Step]()
    handled: tuple[Handled, ...] = ()
    for now in one.looks(EVERY):
        answer = respond(find(one.watched_at(now, DAY), rules, now), handled, rules, now)
        handled = answer.handled
        steps += answer.steps
    return steps


# --- The files ----------------------------------------------------------------------------------------


def test_a_behaviour_plays_the_same_every_time() -> None:
    first, second, other = Played(SET[0]), Played(SET[0]), Played(SET[0], seed=1)
    assert first.minutes == second.minutes
    assert first.minutes != other.minutes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("about: x", "missing required field"),
        ("about: x\nholds: {}\nuse: [{for: 1h, gpus: 3}]\ntruth: {is: busy}", "unknown field `gpus`"),
        ("about: x\nholds: {}\nuse: []\ntruth: {is: busy}", "lasts no time"),
        ("about: x\nholds: {}\nuse: [{for: 1h}]\ntruth: {is: idle}", "since when"),
        ("about: x\nholds: {}\nuse: [{for: 1h}]\ntruth: {is: busy, gpus: [0]}", "holds 0"),
        ("about: x\nholds: {gpus: 2}\nuse: [{for: 1h, gpu: [1]}]\ntruth: {is: busy}", "what 1 GPUs do"),
        ("about: x\nholds: {}\nuse: [{for: 1h, read: much}]\ntruth: {is: busy}", "not a size"),
        ("about: x\nholds: {}\nuse: [{for: soon}]\ntruth: {is: busy}", "not a time span"),
        ("a: [", "is no behaviour"),
    ],
)
def test_a_file_that_makes_no_sense_is_named_with_what_is_wrong(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"odd\.yaml is no behaviour") as error:
        read(path)
    assert said in str(error.value)


def test_the_bench_tells_the_figures_and_names_whom_it_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {"train-steady", "notebook-idle", "idle-and-no-meter", "gpu-one-of-four-idle", "share-leaks"}
    monkeypatch.setattr("bench.findings.load", lambda: [b for b in SET if b.name in few])
    assert run(["findings"]) == 0
    printed = capsys.readouterr()
    figures = {line.split()[0]: line for line in printed.out.splitlines()}
    assert " 0 behaviours" in figures["busy-stopped"]
    assert " 0 behaviours" in figures["busy-warned"]
    assert "of 2 " in figures["idle-found"]
    assert " 1 behaviours" in figures["idle-found"]
    assert "late median minutes" in figures["unused-gpu-found"]
    assert "idle-and-no-meter: idle, and not found" in printed.err
