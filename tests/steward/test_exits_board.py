"""Reports and time, and what they end."""

import math

import pytest

from muster.model.errors import BadInput
from muster.steward.exits import Board, Exits, Met, compiled, normal

HOUR, MINUTE = 3600.0, 60.0
NAN, INF = math.nan, math.inf


def exits(won: str | list[str] = (), lost: str | list[str] = ()) -> Exits:
    sides = [[text] if isinstance(text, str) else text for text in (won, lost)]
    return compiled(*(tuple(map(normal, texts)) for texts in sides))


class Job:
    """A job alone on a board, whose clock began at a time of its own."""

    def __init__(self, won: str | list[str] = (), lost: str | list[str] = ()) -> None:
        self.board = Board()
        self.began = 1000.0
        self.board.begin("job:1", exits(won, lost), 0.0, self.began)

    def tells(self, minute: float, step: float | None = None, **values: float) -> str | None:
        met = self.board.report("job:1", "1", self.began + minute * MINUTE, values, step)
        return met and met.verdict

    def waits(self, minute: float) -> str | None:
        met = self.board.due(self.began + minute * MINUTE)
        return met[0].verdict if met else None

    def due_minute(self) -> float | None:
        at = self.board.next_due()
        return None if at is None else (at - self.began) / MINUTE


# --- Comparisons ----------------------------------------------------------------------------------------


def test_a_report_that_meets_an_exit_ends_the_work_with_a_sentence() -> None:
    board = Board()
    board.begin("job:1", exits("val_acc >= 0.92"), 0.0, 0.0)
    assert board.report("job:1", "1", 1.0, {"val_acc": 0.9}, 1100) is None
    assert board.report("job:1", "1", 2.0, {"val_acc": 0.931}, 1200) == Met(
        subject="job:1",
        source="1",
        verdict="won",
        condition="val_acc >= 0.92",
        sentence="val_acc was 0.931 at step 1,200, and val_acc >= 0.92 ends it as won",
    )


def test_what_has_ended_is_not_looked_at_again() -> None:
    job = Job(won="acc > 1", lost="loss > 1")
    assert job.tells(1, acc=2) == "won"
    assert job.tells(2, acc=2) is None
    assert job.tells(3, loss=2) is None


def test_success_is_looked_at_first() -> None:
    assert Job(won="acc > 1", lost="acc > 0").tells(1, acc=2) == "won"


def test_values_of_several_reports_meet_a_combination() -> None:
    job = Job(won="acc > 0.9 and (loss < 1 or step >= 100)")
    assert job.tells(1, acc=0.95, step=1) is None
    assert job.tells(2, acc=0.8, loss=0.5, step=2) is None
    assert job.tells(3, acc=0.95, step=3) == "won"


def test_the_step_is_compared_like_a_metric() -> None:
    job = Job(won="step >= 1000")
    assert job.tells(1, step=999, loss=1) is None
    assert job.tells(2, step=1000, other=1) == "won"


def test_nobody_else_is_ended() -> None:
    job = Job(won="acc > 1")
    job.board.begin("job:2", exits("acc > 1"), 0.0, 0.0)
    assert job.board.report("job:3", "3", 1.0, {"acc": 2}) is None
    assert job.tells(1, acc=2) == "won"
    assert "job:2" in job.board
    job.board.end("job:2")
    assert "job:2" not in job.board


# --- Time -----------------------------------------------------------------------------------------------


def test_after_is_not_looked_at_before_and_then_without_another_report() -> None:
    job = Job(lost="acc < 0.5 after 2h")
    assert job.tells(100, acc=0.3) is None
    assert job.due_minute() == 120
    assert job.waits(119) is None
    assert job.waits(120) == "lost"
    assert job.due_minute() is None


def test_a_value_that_is_good_again_at_that_time_ends_nothing() -> None:
    job = Job(lost="acc < 0.5 after 2h")
    job.tells(100, acc=0.3)
    job.tells(110, acc=0.6)
    assert job.waits(130) is None
    assert job.due_minute() is None
    assert job.tells(140, acc=0.4) == "lost"


def test_a_metric_that_went_silent_ends_nothing_until_it_is_heard_again() -> None:
    job = Job(lost=["acc < 0.5 after 2h", "loss stalls for 90m", "q > 1 for 20m"])
    job.tells(1, acc=0.3, loss=1.0, q=2)
    job.tells(2, loss=1.5)
    assert job.waits(1000) is None
    assert job.tells(1001, acc=0.9, q=0, loss=2.0) == "lost"


def test_a_stall_ends_the_work_when_its_time_is_full() -> None:
    job = Job(lost="val_loss stalls for 90m")
    assert [job.tells(m, val_loss=v) for m, v in ((0, 3), (10, 2), (60, 2), (80, 2.5))] == [None] * 4
    assert job.due_minute() == 100
    (met,) = job.board.due(job.began + 100 * MINUTE)
    assert met.sentence == (
        "val_loss had not fallen below 2 for 1h 30m, and val_loss stalls for 90m ends it as lost"
    )


def test_any_gain_begins_the_stall_anew() -> None:
    job = Job(lost="val_loss stalls for 90m")
    for minute in range(0, 600, 30):
        assert job.waits(minute) is None
        assert job.tells(minute, val_loss=100 - minute / 1000) is None
    assert job.waits(570 + 89) is None


def test_a_stall_is_counted_in_reports_too() -> None:
    job = Job(lost="q stops rising for 3 reports")
    assert [job.tells(m, q=q) for m, q in enumerate((1, 2, 2, 1))] == [None] * 4
    assert job.tells(5, q=2) == "lost"


def test_a_streak_is_counted_in_reports_or_in_time() -> None:
    job = Job(lost="loss > 3 for 3 reports")
    assert [job.tells(m, loss=v) for m, v in enumerate((4, 4, 1, 4, 4))] == [None] * 5
    assert job.tells(6, loss=4) == "lost"
    job = Job(lost="loss > 3 for 20m")
    assert [job.tells(m, loss=v) for m, v in ((0, 4), (5, 1), (10, 4), (25, 4))] == [None] * 4
    assert job.due_minute() == 30
    assert job.waits(30) == "lost"


def test_time_stands_still_while_the_work_is_suspended() -> None:
    job = Job(lost="acc < 0.5 after 2h")
    job.tells(100, acc=0.3)
    job.board.pause("job:1", job.began + 110 * MINUTE)
    assert job.due_minute() is None
    assert job.waits(1000) is None
    job.board.go_on("job:1", job.began + 1000 * MINUTE)
    assert job.due_minute() == 1010
    assert job.waits(1010) == "lost"


def test_what_it_had_run_before_counts() -> None:
    board = Board()
    board.begin("job:1", exits(lost="acc < 0.5 after 2h"), 2 * HOUR, 0.0)
    assert board.report("job:1", "1", 0.0, {"acc": 0.1}) is not None


def test_a_clock_that_goes_back_counts_nothing_for_that_while() -> None:
    job = Job(lost="acc < 0.5 after 2h")
    job.tells(60, acc=0.3)
    job.tells(-500, acc=0.3)
    assert job.tells(-441, acc=0.3) is None
    assert job.tells(-440, acc=0.3) == "lost"


def test_what_time_met_before_a_report_comes_first() -> None:
    job = Job(won="acc > 0.9", lost="acc < 0.5 after 2h")
    job.tells(100, acc=0.3)
    assert job.tells(121, acc=0.95) == "lost"


def test_without_anything_due_nothing_is_asked() -> None:
    job = Job(won="acc > 1", lost="acc < 0.5 after 2h")
    assert job.due_minute() is None
    assert job.board.due(1e12) == []


# --- Odd reports ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [">=", ">", "<=", "<", "==", "!="])
def test_nan_fulfils_no_comparison(sign: str) -> None:
    assert Job(lost=f"loss {sign} 1").tells(1, loss=NAN) is None


@pytest.mark.parametrize(
    ("text", "values"),
    [("nan", [NAN]), ("inf", [INF, -INF]), ("not finite", [NAN, INF, -INF])],
)
def test_odd_numbers_are_seen_by_those_who_ask_for_them(text: str, values: list[float]) -> None:
    for value in (1.0, NAN, INF, -INF):
        met = Job(lost=f"loss is {text}").tells(1, loss=value)
        assert (met is not None) == any(value == v or (value != value and v != v) for v in values)


def test_infinities_compare_as_numbers_do() -> None:
    assert Job(lost="loss > 3").tells(1, loss=INF) == "lost"
    assert Job(won="loss < 3").tells(1, loss=-INF) == "won"


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_what_is_not_finite_is_no_gain_and_nan_breaks_a_streak(value: float) -> None:
    job = Job(lost="loss stalls for 2 reports")
    assert job.tells(1, loss=3) is None
    assert job.tells(2, loss=value) is None
    assert job.tells(3, loss=value) == "lost"
    job = Job(lost="loss > 1 for 2 reports")
    assert job.tells(1, loss=2) is None
    assert job.tells(2, loss=NAN) is None
    assert job.tells(3, loss=2) is None


def test_a_loss_that_was_never_finite_has_stalled_since_its_first_report() -> None:
    job = Job(lost="loss stalls for 90m")
    job.tells(10, loss=NAN)
    job.tells(80, loss=NAN)
    (met,) = job.board.due(job.began + 100 * MINUTE)
    assert met.sentence.startswith("loss had not been a finite number for 1h 30m")


def test_a_late_report_counts_for_no_streak_and_no_stall() -> None:
    job = Job(lost=["loss > 3 for 2 reports", "q stops rising for 2 reports"])
    assert job.tells(1, step=10, loss=4, q=1) is None
    assert job.tells(2, step=9, loss=4, q=0) is None
    assert job.tells(3, step=8, loss=4, q=0) is None
    assert job.tells(4, step=11, loss=4, q=0) == "lost"


def test_a_late_report_still_meets_a_plain_comparison_by_itself() -> None:
    job = Job(won=["acc > 0.9", "acc > 0.8 and loss < 1"])
    job.tells(1, step=10, acc=0.7, loss=0.5)
    assert job.tells(2, step=9, acc=0.85) is None  # with the loss of another step
    assert job.tells(3, step=9, acc=0.95) == "won"


def test_a_late_report_is_not_taken_for_one_that_came_after_a_time() -> None:
    job = Job(lost="acc < 0.5 after 2h")
    job.tells(115, step=10, acc=0.9)
    assert job.tells(130, step=2, acc=0.1) is None


def test_duplicates_count_once() -> None:
    job = Job(lost=["loss > 3 for 3 reports", "q stops rising for 3 reports"])
    for _ in range(5):
        assert job.tells(1, step=1, loss=4, q=1) is None
        assert job.tells(2, step=1, loss=5, q=1) is None
    assert job.tells(3, step=2, loss=4, q=2) == "lost"


def test_without_steps_every_report_counts() -> None:
    job = Job(lost="loss > 3 for 3 reports")
    assert [job.tells(1, loss=4) for _ in range(3)] == [None, None, "lost"]


def test_a_step_that_is_no_number_is_none() -> None:
    job = Job(lost="loss > 3 for 2 reports")
    assert job.tells(1, step=NAN, loss=4) is None
    assert job.tells(2, step=INF, loss=4) == "lost"


def test_a_new_attempt_may_begin_at_an_earlier_step_and_the_best_is_kept() -> None:
    job = Job(lost=["loss > 3 for 2 reports", "loss stalls for 3 reports"])
    assert job.tells(1, step=100, loss=4) is None
    job.board.restarted("job:1", "1")
    assert job.tells(2, step=50, loss=5) is None  # a streak of one
    assert job.tells(3, step=60, loss=2) is None
    assert job.tells(4, step=70, loss=2.5) is None
    job.board.restarted("job:1", "1")
    assert job.tells(5, step=40, loss=2.6) is None
    assert job.tells(6, step=50, loss=2.2) == "lost"


# --- Silence ----------------------------------------------------------------------------------------------


def test_a_metric_that_never_comes_is_said_once_and_ends_nothing() -> None:
    job = Job(won="val_acc >= 0.9", lost="loss is nan")
    job.tells(1, val_accuracy=0.95, loss=1)
    assert job.board.silent(job.began + 29 * MINUTE, 30 * MINUTE) == []
    (said,) = job.board.silent(job.began + 30 * MINUTE, 30 * MINUTE)
    assert (said.subject, said.metric) == ("job:1", "val_acc")
    assert said.sentence == (
        "val_acc has not been reported in 30m of running, so nothing can end by it; "
        "val_accuracy was: is that meant?"
    )
    assert job.board.silent(job.began + 999 * MINUTE, 30 * MINUTE) == []
    assert job.tells(1000, val_acc=0.95) == "won"


def test_of_names_that_resemble_nothing_some_are_listed() -> None:
    job = Job(won="val_acc >= 0.9")
    assert job.board.silent(job.began + HOUR, HOUR)[0].sentence.endswith("so nothing can end by it")
    job = Job(won="val_acc >= 0.9")
    job.tells(1, lr=1, x=2)
    assert job.board.silent(job.began + HOUR, HOUR)[0].sentence.endswith("; what was: lr, x")


def test_suspended_time_is_no_silence() -> None:
    job = Job(won="val_acc >= 0.9")
    job.board.pause("job:1", job.began)
    assert job.board.silent(job.began + 99 * HOUR, HOUR) == []


# --- Efforts ------------------------------------------------------------------------------------------------


def effort(won: str | list[str] = (), lost: str | list[str] = ()) -> Board:
    board = Board()
    board.begin("effort:e", exits(won, lost), 0.0, 0.0)
    return board


def test_an_effort_is_won_by_one_of_its_jobs() -> None:
    board = effort(won="acc > 0.9 and loss < 1")
    assert board.report("effort:e", "1", 1.0, {"acc": 0.95, "loss": 2}) is None
    assert board.report("effort:e", "2", 1.0, {"acc": 0.5, "loss": 0.5}) is None
    met = board.report("effort:e", "2", 1.0, {"acc": 0.95})
    assert met is not None
    assert (met.source, met.verdict) == ("2", "won")


def test_an_effort_is_lost_when_all_of_its_jobs_are() -> None:
    board = effort(lost="loss is nan")
    for source in "123":
        board.join("effort:e", source)
    assert board.report("effort:e", "1", 1.0, {"loss": NAN}) is None
    assert board.report("effort:e", "2", 2.0, {"loss": 1.0}) is None
    assert board.report("effort:e", "2", 3.0, {"loss": NAN}) is None
    board.leave("effort:e", "1")  # what it told stays
    board.leave("effort:e", "3")  # it told nothing
    met = board.report("effort:e", "2", 4.0, {"loss": NAN}, 5)
    assert met is not None
    assert met.verdict == "lost"


def test_an_effort_stalls_when_none_of_its_jobs_gets_better() -> None:
    board = effort(lost="acc stalls for 90m")
    for minute in range(0, 300, 30):
        assert board.report("effort:e", "1", minute * MINUTE, {"acc": 0.5}) is None
        assert board.report("effort:e", "2", minute * MINUTE, {"acc": 0.6 + minute / 1000}) is None
    board.report("effort:e", "1", 330 * MINUTE, {"acc": 0.6})
    assert [met.verdict for met in board.due(360 * MINUTE)] == ["lost"]


def test_steps_of_different_jobs_have_nothing_to_do_with_each_other() -> None:
    board = effort(lost="loss > 3 for 2 reports")
    assert board.report("effort:e", "1", 1.0, {"loss": 4}, 100) is None
    assert board.report("effort:e", "2", 2.0, {"loss": 4}, 1) is None
    assert board.report("effort:e", "2", 3.0, {"loss": 4}, 2) is None
    assert board.report("effort:e", "1", 4.0, {"loss": 4}, 101) is not None


# --- Changes ------------------------------------------------------------------------------------------------


def test_a_changed_charter_keeps_what_was_learned() -> None:
    job = Job(lost=["loss stalls for 90m", "q > 1 for 3 reports"])
    job.tells(0, loss=1, q=2)
    job.tells(60, loss=2, q=2)
    changed = exits(lost=["loss stalls for 2h", "q > 1 for 4 reports"])
    job.board.change("job:1", changed, job.began + 80 * MINUTE)
    assert job.waits(119) is None
    assert job.tells(119, q=2) is None
    assert job.due_minute() == 120
    assert job.waits(120) == "lost"


def test_a_metric_that_is_named_anew_is_awaited_from_then_on() -> None:
    job = Job(won="acc > 1")
    job.tells(1, acc=0, loss=1)
    job.board.change("job:1", exits(won="acc > 1", lost=["loss > 9", "wer > 9"]), job.began + HOUR)
    assert job.board.silent(job.began + HOUR, HOUR) == []
    assert [said.metric for said in job.board.silent(job.began + 2 * HOUR, HOUR)] == ["wer"]


def test_a_broken_state_is_refused() -> None:
    with pytest.raises(BadInput, match="begin it anew"):
        Board().restore("job:1", exits("a > 1"), b"\xff what", 0.0)


def test_the_time_that_passed_without_a_server_counts() -> None:
    job = Job(lost="acc < 0.5 after 2h")
    job.tells(100, acc=0.3)
    state = job.board.state("job:1", job.began + 100 * MINUTE)
    again = Board()
    again.restore("job:1", exits(lost="acc < 0.5 after 2h"), state, 5.0, ran_seconds=121 * MINUTE)
    assert [met.verdict for met in again.due(5.0)] == ["lost"]
