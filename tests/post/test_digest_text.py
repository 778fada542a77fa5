"""What a digest says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.charter import Verdict
from muster.model.events import Outcome
from muster.model.units import HOUR
from muster.steward.digest import (
    MARKDOWN,
    MOST_CHARACTERS,
    MOST_LINES,
    PLAIN,
    SLACK,
    Digest,
    Line,
    Single,
    clean,
    written,
)
from muster.steward.since import Ended, in_a_sentence

LOST = Ended(Outcome.STOPPED, Verdict.LOST, "val_loss stalled 90 min", 4.0, HOUR, 8.75 * HOUR)
WON = Ended(Outcome.STOPPED, Verdict.WON, "val_acc >= 0.92 (now 0.93)", 1.0, HOUR)
MENDED = "job 7 eval: it ran out of memory: it is run again with more (64G → 96G)"


def test_a_digest_as_the_design_has_it() -> None:
    question = Line(
        1, "whisper passed 80 % of its budget (720 of 900 GPU·h).", "muster effort extend whisper"
    )
    digest = Digest(to="ana", questions=(question,), summary=in_a_sentence([WON, WON, LOST], [MENDED]))
    assert written(digest).splitlines() == [
        "Today needs one answer from you.",
        "  1  whisper passed 80 % of its budget (720 of 900 GPU·h).",
        "     muster effort extend whisper",
        "Since yesterday: 2 jobs won, 1 lost (val_loss stalled 90 min; 31 GPU·h not spent),"
        " 1 retried by itself (job 7 eval: it ran out of memory: it is run again with more (64G → 96G)).",
    ]


def test_if_there_is_nothing_it_says_so() -> None:
    assert written(Digest(to="ana")) == "Nothing needs an answer from you."
    assert in_a_sentence([], []) == ""


def test_what_is_not_summed_is_listed_with_its_command() -> None:
    digest = Digest(to="ana", news=(Line(3, "the review is over", "muster review"),), since="14:05")
    assert written(digest).splitlines()[1:] == ["Since 14:05:", "  the review is over  muster review"]


def test_a_long_digest_is_cut_and_says_so() -> None:
    lines = tuple(Line(number, "?") for number in range(MOST_LINES + 5))
    text = written(Digest(to="ana", questions=lines, left_out=2))
    assert text.splitlines()[0] == f"Today needs {MOST_LINES + 5} answers from you."
    assert text.splitlines()[-2:] == [
        "5 more: muster digest",
        "2 older messages found no room and are gone.",
    ]


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ([Ended(Outcome.SUCCEEDED, reason="all went well")], "1 job succeeded"),
        ([Ended(Outcome.FAILED, reason="exit code 3")], "1 job failed (exit code 3)"),
        ([Ended(Outcome.STOPPED, reason="by ana")] * 2, "2 jobs stopped"),
        ([WON, Ended(Outcome.TIMEOUT)], "1 job won (val_acc >= 0.92 (now 0.93)), 1 at the time limit"),
        ([LOST, LOST], "2 jobs lost (62 GPU·h not spent)"),
        ([Ended(Outcome.STOPPED, Verdict.LOST, "", 1.0, HOUR, 2 * HOUR)], "1 job lost (1.0 GPU·h not spent)"),
        ([Ended(Outcome.STOPPED, Verdict.LOST, "", 4.0, None, HOUR)], "1 job lost"),
        ([Ended(Outcome.STOPPED, None, "", 4.0, 0.0, HOUR)], "1 job stopped"),
    ],
)
def test_how_jobs_ended_is_one_sentence(ended: list[Ended], said: str) -> None:
    assert in_a_sentence(ended, []) == said


def test_every_verdict_and_outcome_has_its_word() -> None:
    ended = [*(Ended(outcome) for outcome in Outcome), *(Ended(Outcome.STOPPED, v) for v in Verdict)]
    said = in_a_sentence(ended, [])
    assert said.count(", 1 ") == len(ended) - 1


@given(st.text(), st.text())
def test_whatever_is_written_stays_on_its_line_and_is_no_markup(sentence: str, action: str) -> None:
    single = Single("ana", Line(1, sentence, action))
    assert clean(clean(sentence)) == clean(sentence)
    assert len(clean(sentence)) <= MOST_CHARACTERS
    for form in (PLAIN, MARKDOWN, SLACK):
        text = written(single, form)
        assert text.count("\n") == bool(action)
        assert text.replace("\n", "").isprintable()
    slack = written(single, SLACK)
    assert "<" not in slack
    assert ">" not in slack
    assert slack.partition("\n")[2].count("`") == 2 * bool(action)
