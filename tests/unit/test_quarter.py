"""The simulated quarter: its sums are the published ones, its truth adds up, and only a steward steers it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import quarter
from bench.ask import Ask
from bench.quarter_lives import USUAL, Kind, life_of
from bench.quarter_measure import compare, ledger
from bench.quarter_people import after_working, is_open
from bench.quarter_play import Assumed, chartered, play
from bench.quarter_run import Notes, Outcome, Span, Stage, Steward, Tended, Track
from bench.quarter_steward import Stewarding
from bench.quarter_sums import Ending, Sums, files, read
from bench.quarter_world import GPUS, World, generate
from muster.engines.sim import SimEngine
from muster.model.errors import BadInput
from muster.model.events import Event, Submitted
from muster.model.policy import preset
from muster.model.units import DAY, HOUR, WEEK
from muster.server.loop import Loop
from muster.steward.exits import exits_of
from muster.store.fold import Fold

# Columns of AcmeTrace's summary that are read, with its row of Philly.
SUMMARY = """\
id,gpu_job_num,avg_run_time_gpu,avg_que_time_gpu,avg_gpu_num,med_run_time_gpu,complete_rate_gpu,cancel_rate_gpu,\
fail_rate_gpu,complete_gpu_time,cancel_gpu_time,fail_gpu_time
Philly,112956,18006.055,3760.604,1.928,874.0,0.604,0.09,0.305,2210176414.0,2025326056.0,2659215061.0
"""
QUANTILES = "quantile_pct,gpu_util\n0.0,0.0\n32.2,0.0\n32.3,1.0\n100.0,100.0\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("acme")
    (made / "cluster_summary.csv").write_text(SUMMARY)
    (made / "util_gpu_philly_quantiles.csv").write_text(QUANTILES)
    return made


@pytest.fixture(scope="module")
def sums(folder: Path) -> Sums:
    return read(files(folder)["philly"], "philly")


@pytest.fixture(scope="module")
def day(sums: Sums) -> World:
    return generate(sums, seed=1, days=1)


@pytest.fixture(scope="module")
def tended(day: World) -> tuple[Outcome, Stewarding]:
    return play(day, Assumed(exits=1.0))


@pytest.fixture(scope="module")
def plain(day: World) -> list[Event]:
    """What happens with the loop and the engine, and nothing in between."""
    return _facts(day, None, tended=False)


# --- The world -----------------------------------------------------------------------------------------


def test_published_sums_are_read_as_parts_of_one(sums: Sums) -> None:
    assert sum(sums.gpu_time.values()) == pytest.approx(1)
    assert sums.gpu_time[Ending.FAILED] == pytest.approx(0.386, abs=0.001)
    assert sums.zero_samples == pytest.approx(0.322)


def test_a_cluster_that_the_summary_does_not_have_is_refused(folder: Path) -> None:
    with pytest.raises(BadInput, match="no row for seren"):
        read(files(folder)["seren"], "seren")


def test_a_few_days_have_the_published_sums(sums: Sums) -> None:
    world = generate(sums, seed=1, days=4)
    works = [work for work in world.works.values() if world.counts(work)]
    held = np.array([work.gpus * work.run_seconds for work in works])
    for ending in Ending:
        part = held[[work.ending is ending for work in works]].sum() / held.sum()
        assert part == pytest.approx(sums.gpu_time[ending], abs=0.03)
    runs = [work.run_seconds for work in works]
    assert np.mean(runs) == pytest.approx(sums.run_mean_seconds, rel=0.01)
    assert np.median(runs) == pytest.approx(sums.run_median_seconds, rel=0.01)
    assert np.mean([work.gpus for work in works]) == pytest.approx(sums.gpus_mean, rel=0.05)


def test_the_same_seed_makes_the_same_world(sums: Sums, day: World) -> None:
    assert generate(sums, seed=1, days=1) == day
    assert generate(sums, seed=2, days=1).works != day.works


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(Ending), st.floats(10, 30 * DAY), st.sampled_from([1, 4, 8]), st.integers(0, 10**6))
def test_a_life_lies_within_its_run(ending: Ending, run: float, gpus: int, seed: int) -> None:
    life = life_of(ending, run, gpus, 9 * HOUR, USUAL, np.random.default_rng(seed))
    assert 0 <= life.useful_seconds <= run
    bounds = [at for span in life.idle for at in span]
    assert bounds == sorted(bounds)
    assert all(0 <= at <= run for at in bounds)
    worthless = life.worthless_seconds(0.0, run)
    assert -1e-6 <= worthless <= run * (1 + 1e-9)
    half = life.worthless_seconds(0.0, run / 2) + life.worthless_seconds(run / 2, run)
    assert half == pytest.approx(worthless)


def test_a_training_that_wins_passes_its_aim_when_its_result_is_there(day: World) -> None:
    lives = [work.life for work in day.works.values() if work.life.curve is not None]
    won = [life for life in lives if life.curve and life.curve.at(life.useful_seconds) >= life.curve.aim]
    assert len(won) > 10
    for life in won:
        assert life.curve is not None
        assert life.curve.at(0.9 * life.useful_seconds) <= life.curve.aim


def test_all_exits_that_owners_write_can_be_read(day: World) -> None:
    charters = [work.job.charter for work in chartered(day, 1.0).works.values()]
    assert all(charter.purpose and charter.has_end for charter in charters)
    assert sum(len(exits_of(charter).exits) for charter in charters if charter.success) > 100


@given(st.floats(0, 4 * WEEK), st.floats(0, 40 * HOUR))
def test_people_answer_while_they_work(now: float, seconds: float) -> None:
    at = after_working(now, seconds)
    assert is_open(at)
    assert at >= now + seconds - 1e-6


# --- The loop ------------------------------------------------------------------------------------------


class _Idle:
    """A steward who only looks."""

    looks = 0

    def look(self, now: float) -> Sequence[Event]:
        self.looks += 1
        return ()

    def expects(self) -> bool:
        return False


def _facts(world: World, steward: Steward | None, *, tended: bool = True) -> list[Event]:
    """All facts of a run."""
    run_seconds = {work.job.id: work.run_seconds for work in world.works.values()}
    engine, notes, facts = SimEngine(world.nodes, run_seconds), Notes(world), list[Event]()
    for work in world.works.values():
        engine.will(Submitted(work.job.submitted_at, work.job))
    between = Tended(engine, notes)
    between.steward = steward

    def record(fact: Event) -> None:
        facts.append(fact)
        notes.take(fact)

    policy = preset("fair")
    loop = Loop(between if tended else engine, policy, Fold(policy, run_seconds), record)
    while loop.step():
        pass
    return facts


def test_without_a_steward_the_loop_is_unchanged(day: World, plain: list[Event]) -> None:
    assert _facts(day, None) == plain


def test_a_steward_who_only_looks_changes_nothing(day: World, plain: list[Event]) -> None:
    steward = _Idle()
    assert _facts(day, steward) == plain
    assert steward.looks > 2 * 24 * 4


# --- Accounts ------------------------------------------------------------------------------------------


def test_every_gpu_hour_is_counted_once(day: World, tended: tuple[Outcome, Stewarding]) -> None:
    outcome, steward = tended
    without, with_ = ledger(Stage(day).run()), ledger(outcome)
    for side in (without, with_):
        hours = side.hours
        assert min(hours.useful, hours.worthless, hours.again, side.free) >= -1e-6
        assert hours.held + side.free == pytest.approx(GPUS * 24)
    compared = compare(without, with_, steward.stopped, steward.asked_at, day)
    assert 0 < compared.recovered == pytest.approx(sum(compared.by_reason.values()))
    became = compared.more_useful + compared.more_free + compared.more_again
    assert compared.recovered == pytest.approx(became)


def test_a_false_stop_is_one_of_work_that_was_useful(day: World, tended: tuple[Outcome, Stewarding]) -> None:
    _, steward = tended
    false = [stop for stop in steward.stopped if stop.false]
    assert 0 < len(false) < len(steward.stopped)
    assert all(day.works[stop.root].life.is_useful_after(stop.done_seconds) for stop in false)


def test_what_is_revived_goes_on_from_what_was_saved(tended: tuple[Outcome, Stewarding]) -> None:
    outcome, steward = tended
    revived = [(outcome.tracks.get(f"{stop.root}+"), stop) for stop in steward.stopped if stop.revived]
    firsts = {track.job.id: (track, stop) for track, stop in reversed(revived) if track is not None}
    assert firsts
    for track, stop in firsts.values():
        if track.work.life.kind is not Kind.SESSION:
            assert track.offset_seconds == (stop.done_seconds if track.job.checkpoint else 0.0)


def test_work_done_twice_is_told_apart(day: World) -> None:
    work = next(work for work in day.works.values() if work.life.kind is Kind.SHORT)
    track = Track(work, work.job)
    track.placed_at = day.begin
    track.left(day.begin + 5.0, lost_seconds=5.0)
    assert (track.kept_seconds, track.spans) == (0.0, [Span(day.begin, day.begin + 5.0, 0.0, 5.0)])


def test_figures_come_with_what_was_published(
    sums: Sums, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarter, "WEEK_DAYS", 0.25)
    found = quarter.FAMILY.files_in(folder)
    asked = Ask({"philly": found["philly"]}, ("week",), 1, 1, lambda _: None)
    figures = list(quarter.measure(asked))
    names = {figure.name for figure in figures}
    assert names == {f"quarter-{part}" for part in ("calibration", "hours", "recovered", "wait", "false")}
    shown = {figure.policy: figure for figure in figures if figure.name == "quarter-calibration"}
    assert shown["GPU-time failed"].published == pytest.approx(100 * sums.gpu_time[Ending.FAILED])
