"""The language of exit conditions: what it reads, how it points at what it can't, what makes no sense."""

import contextlib
import math
import re
from pathlib import Path

import pytest
from exit_worlds import CONDITIONS
from hypothesis import example, given
from hypothesis import strategies as st

from muster.model.errors import BadInput
from muster.steward.exits import check_sense, compiled, normal, parse_condition
from muster.steward.exits.direction import way_by_name
from muster.steward.exits.terms import (
    AllOf,
    AnyOf,
    Compares,
    Condition,
    IsOdd,
    Odd,
    Reports,
    Sign,
    Span,
    Stalls,
    Way,
    show,
)

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "conditions.md"


def refusal(text: str) -> list[str]:
    with pytest.raises(BadInput) as caught:
        normal(text)
    return str(caught.value).split("\n")


# --- Reading ------------------------------------------------------------------------------------------


def test_each_kind_of_condition_is_read() -> None:
    assert parse_condition("val_acc >= 0.92") == Compares("val_acc", Sign.AT_LEAST, 0.92)
    assert parse_condition("val/acc<-1e-3") == Compares("val/acc", Sign.BELOW, -0.001)
    assert parse_condition("acc < 92%") == Compares("acc", Sign.BELOW, 0.92)
    assert parse_condition("val_acc < 0.5 after 2h") == Compares("val_acc", Sign.BELOW, 0.5, None, 7200)
    assert parse_condition("a > 1 for 3 reports") == Compares("a", Sign.ABOVE, 1, Reports(3))
    assert parse_condition("a > 1 for 20m after 1h") == Compares("a", Sign.ABOVE, 1, Span(1200), 3600)
    assert parse_condition("val_loss stalls for 90m") == Stalls("val_loss", None, Span(5400))
    assert parse_condition("x stops rising for 50 reports") == Stalls("x", Way.RISING, Reports(50))
    assert parse_condition("x stops falling for 1d after 2h") == Stalls("x", Way.FALLING, Span(86400), 7200)
    assert parse_condition(" loss is NaN ") == IsOdd("loss", Odd.NAN)
    assert parse_condition("loss is inf") == IsOdd("loss", Odd.INF)
    assert parse_condition("loss is not finite") == IsOdd("loss", Odd.NOT_FINITE)
    assert parse_condition('"eval loss" < 3') == Compares("eval loss", Sign.BELOW, 3)
    assert parse_condition("loss < inf") == Compares("loss", Sign.BELOW, math.inf)


def test_and_binds_closer_than_or() -> None:
    a, b, c = (Compares(name, Sign.ABOVE, 1) for name in "abc")
    assert parse_condition("a > 1 or b > 1 and c > 1") == AnyOf((a, AllOf((b, c))))
    assert parse_condition("(a > 1 or b > 1) and c > 1") == AllOf((AnyOf((a, b)), c))
    assert parse_condition("a > 1 and (b > 1 and c > 1)") == AllOf((a, b, c))


@pytest.mark.parametrize(
    ("written", "spelling"),
    [
        ("val_acc>=92%", "val_acc >= 0.92"),
        ("VAL > 1.50 AFTER 120min", "VAL > 1.5 after 2h"),
        ("a > 1 after 2h for 3 report", "a > 1 for 3 reports after 2h"),
        ("loss stalls for 1h30m", "loss stalls for 90m"),
        ("loss stalls for 01:30:00", "loss stalls for 90m"),
        ("loss stalls for 90 minutes", "loss stalls for 90m"),
        ("a < 1000000", "a < 1000000"),
        ("a < -0.0", "a < 0"),
        ("a < -inf", "a < -inf"),
        ("((a > 1))", "a > 1"),
        ("(a > 1 or b is nan after 3h) after 2h", "a > 1 after 2h or b is nan after 3h"),
        ('"acc" > 1', "acc > 1"),
        ('"for" > 1', '"for" > 1'),
        (r'"a \"b\" \\" > 1', r'"a \"b\" \\" > 1'),
        ("a > 1 for 500ms", "a > 1 for 500ms"),
    ],
)
def test_spellings_are_made_one(written: str, spelling: str) -> None:
    assert normal(written) == spelling
    assert normal(spelling) == spelling


@given(CONDITIONS)
def test_what_is_shown_is_read_as_the_same(condition: Condition) -> None:
    assert parse_condition(show(condition)) == condition


# --- Pointing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("val_acc >>= 1", 9, "a number was expected here"),
        ("val_acc", 7, "write it like val_acc >= 0.92"),
        ("0.9 <= acc", 0, "the name of a metric was expected"),
        ("val_acc >= high", 11, "a number was expected"),
        ("acc > 1d", 6, "a number, and not a time, was expected"),
        ("loss stall for 2h", 5, "did you mean 'stalls'?"),
        ("loss stalls", 11, "'for 90m' or 'for 50 reports'"),
        ("loss stalls for ever", 16, "a time, like 90m, or a number of reports"),
        ("loss stalls for 90", 18, "a unit was expected"),
        ("loss stalls for 3 repotrs", 18, "did you mean 'reports'?"),
        ("loss stalls for 0 reports", 16, "'for' nothing says nothing"),
        ("loss stalls for 1.5 reports", 16, "reports are counted"),
        ("x stops raising for 2h", 8, "did you mean 'rising'?"),
        ("loss is big", 8, "'nan', 'inf' or 'not finite'"),
        ("loss is not nan", 12, "loss is not finite"),
        ("loss == nan", 8, "write 'loss is nan'"),
        ("acc > 1e999", 6, "beyond all bounds"),
        ("acc > 1 after lunch", 14, "a time, like 2h"),
        ("acc > 1 after 3 reports", 14, "compare the step"),
        ("acc > 1 after 2h after 3h", 17, "twice"),
        ("acc > 1 after 999999d", 14, "longer than a century"),
        ("acc = 1", 4, "write =="),
        ("acc ≥ 1", 4, "write >="),
        ("acc > 1, loss < 2", 7, "give each condition by itself"),
        ("acc > 1 && loss < 2", 8, "write and"),
        ("not acc > 1", 0, "turn the comparison round"),
        ("acc > 1 an loss < 2", 8, "did you mean 'and'?"),
        ("(acc > 1", 8, "a ) was expected"),
        ("acc > 1)", 7, "closes nothing"),
        ("(a > 1 or b > 1) for 3 reports", 17, "inside the parentheses"),
        ('"acc > 1', 0, "never closed"),
        ('"" > 1', 0, "letters that can be printed"),
        ("for > 1", 0, 'write "for"'),
        ("a > --1", 4, "means nothing here"),
        ("(" * 17 + "a > 1" + ")" * 17, 16, "deeper than 16"),
        ("a" * 129 + " > 1", 0, "at most 128 letters"),
    ],
)
def test_what_is_wrong_is_pointed_at(text: str, at: int, words: str) -> None:
    sentence, written, caret = refusal(text)
    assert words in sentence
    assert "is not a condition: " in sentence
    if len(text) <= 60:
        assert (written, caret) == (f"  {text}", " " * (at + 2) + "^")


def test_of_a_long_condition_the_surroundings_are_shown() -> None:
    _, written, caret = refusal("a > 1 and " * 20 + "b !! 2 and c > 3 and " + "d > 4 and " * 5 + "e > 1")
    assert written[len(caret) - 1] == "!"
    assert written.startswith("  …")
    assert written.endswith("…")
    assert len(written) < 70


def test_nothing_and_too_much_are_refused() -> None:
    assert "can't be empty" in refusal(" ")[0]
    assert "too long" in refusal("a > 1 and " * 40 + "b > 1")[0]


WORDS = """
a val_acc "x y" > >= == != < 1 92% 1e-3 inf nan after for 2h 90m 3 reports and or ( ) is not finite stalls
stops rising falling ≥ ! , ' "
"""
PIECES = st.sampled_from(WORDS.split())


@given(st.text(max_size=40) | st.lists(PIECES, max_size=12).map(" ".join))
@example("a > 1 and " * 30)
@example("(" * 299)
def test_any_text_is_a_condition_or_a_sentence(text: str) -> None:
    with contextlib.suppress(BadInput):
        spelling = normal(text)
        assert normal(spelling) == spelling


@given(st.lists(PIECES, max_size=12).map(" ".join))
def test_a_refusal_has_at_most_three_lines_and_its_caret_is_below_the_text(text: str) -> None:
    with contextlib.suppress(BadInput):
        normal(text)
        return
    sentence, *pointed = refusal(text)
    assert sentence.isprintable()
    if pointed:
        assert len(pointed[1]) <= len(pointed[0]) + 1


# --- Which way is better --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("val_loss", Way.FALLING),
        ("valLoss", Way.FALLING),
        ("valloss", Way.FALLING),
        ("eval/WER", Way.FALLING),
        ("loss/train", Way.FALLING),
        ("eval.accuracy", Way.RISING),
        ("acc1", Way.RISING),
        ("f1", Way.RISING),
        ("mAP", Way.RISING),
        ("reward/mean", Way.RISING),
        ("accuracy_loss", None),
        ("neg_reward", None),
        ("lr", None),
        ("temperature", None),
    ],
)
def test_well_known_names_tell_which_way_is_better(name: str, way: Way | None) -> None:
    assert way_by_name(name) is way


def way_in(success: tuple[str, ...], failure: tuple[str, ...]) -> Way | None:
    last = compiled(success, failure).exits[-1].condition
    assert isinstance(last, Stalls)
    return last.way


def test_the_charter_tells_which_way_is_better() -> None:
    assert way_in(("q >= 3",), ("q stalls for 1h",)) is Way.RISING
    assert way_in(("q < 3",), ("q stalls for 1h",)) is Way.FALLING
    assert way_in((), ("q < 3 after 2h", "q stalls for 1h")) is Way.RISING
    assert way_in((), ("q stops falling for 3h", "q stalls for 1h")) is Way.FALLING
    assert way_in(("loss > 3",), ("loss stalls for 1h",)) is Way.RISING
    assert way_in((), ("step stalls for 1h",)) is Way.RISING


@pytest.mark.parametrize("success", [(), ("q > 1 and q < 3",), ("q == 3",)])
def test_what_nobody_can_tell_is_refused(success: tuple[str, ...]) -> None:
    with pytest.raises(BadInput, match="write 'q stops rising' or 'q stops falling' instead"):
        compiled(success, ("q stalls for 1h",))


# --- Sense ----------------------------------------------------------------------------------------------


def doubts(*, won: str | None = None, lost: str | None = None, limit: float | None = None) -> str:
    exits = compiled((won,) if won else (), (lost,) if lost else ())
    return "\n".join(check_sense(exits, limit))


@pytest.mark.parametrize(
    "text",
    [
        "acc > 0.9 and acc < 0.5",
        "acc == 1 and acc != 1",
        "loss is nan and loss > 3",
        "loss is inf and loss < 3 and loss > -3",
        "x > inf",
        "step < 0",
        "step is nan",
        "a > 1 and (b > 2 and b < 1 or b is nan and b is inf)",
    ],
)
def test_what_no_value_fulfils_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="can never be met: no value of"):
        doubts(lost=text)


@pytest.mark.parametrize(
    "text", ["acc < 1 after 2h", "loss stalls for 2h", "acc < 1 for 3h", "acc < 1 and loss stalls for 9d"]
)
def test_what_takes_longer_than_the_work_may_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="runs for at most 2h, its time limit"):
        doubts(lost=text, limit=7200)
    assert doubts(lost=text) == ""
    assert doubts(lost=text, limit=10 * 86400) == ""


def test_what_is_too_tangled_to_look_into_is_accepted() -> None:
    tangled = " and ".join(f"(a{n} > 1 or b{n} > 1)" for n in range(9))
    assert doubts(lost=f"{tangled} or c > 1 and c < 0") == ""


def test_of_several_ways_those_that_lead_nowhere_are_said() -> None:
    assert "'a > 1 and a < 0' in" in doubts(lost="a > 1 and a < 0 or b > 1")


@pytest.mark.parametrize(
    "text",
    ["step >= 0", "loss is nan or loss < inf", "a < 3 or a >= 3", "x != inf", "step >= 0 for 1 report"],
)
def test_what_any_first_report_meets_is_said(text: str) -> None:
    assert "is met by any first report" in doubts(won=text)


@pytest.mark.parametrize("text", ["step >= 0 after 2h", "step >= 0 for 3 reports", "step >= 1", "loss > 0"])
def test_what_some_first_report_would_not_meet_is_not(text: str) -> None:
    assert "first report" not in doubts(lost=text)


def test_what_is_won_and_lost_at_once_is_said_with_who_wins() -> None:
    said = doubts(won="acc >= 0.5", lost="acc < 0.9 after 2h")
    assert (
        said
        == "acc = 0.7 would meet both 'acc >= 0.5' and 'acc < 0.9 after 2h'; success comes first: that is won"
    )
    assert doubts(won="acc >= 0.9", lost="acc < 0.5") == ""
    assert doubts(won="acc >= 0.9", lost="step > 3") == ""


def test_what_looks_turned_round_or_too_exact_is_said() -> None:
    assert "more of loss is usually worse" in doubts(won="loss > 3")
    assert "less of acc is usually worse" in doubts(lost="acc > 0.9")
    assert "seldom exactly 0.92" in doubts(won="q == 0.92")
    assert doubts(won="q == 3", lost="loss > 3 or acc < 0.1") == ""
    assert doubts(won="q == inf") == ""


@given(CONDITIONS, st.none() | st.floats(1, 1e6))
def test_any_condition_has_an_answer(condition: Condition, limit: float | None) -> None:
    with contextlib.suppress(BadInput):
        check_sense(compiled((), (show(condition),)), limit)


# --- The page -------------------------------------------------------------------------------------------


def examples(kind: str) -> list[str]:
    blocks = re.findall(rf"```{kind}\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


def test_the_examples_of_the_page_are_conditions() -> None:
    assert len(examples("condition")) > 15
    for text in examples("condition"):
        assert compiled((), (normal(text),))


def test_what_the_page_says_is_refused_is() -> None:
    assert len(examples("refused")) > 3
    for text in examples("refused"):
        with pytest.raises(BadInput):
            check_sense(compiled((), (normal(text),)), 8 * 3600.0)


def test_the_page_names_every_word_of_the_language() -> None:
    written = " ".join(re.findall(r"`([^`\n]+)`", DOCS.read_text(encoding="utf-8")))
    for word in (*Sign, *Odd, *Way, "after", "for", "reports", "stalls", "stops", "and", "or"):
        assert f" {word}" in written
