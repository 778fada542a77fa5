"""Templates find named numbers in lines, whatever lines and templates are made of."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.errors import BadInput
from muster.model.template import Template


@pytest.mark.parametrize(
    ("template", "line", "found"),
    [
        ("epoch {step} loss {loss}", "INFO epoch   3 loss -1.5e-3 (best)", {"step": 3, "loss": -0.0015}),
        ("epoch {step} ... loss {loss}", "epoch 3/10, 5s, loss 0.25", {"step": 3, "loss": 0.25}),
        ("acc {acc} loss {loss}", "acc 91.5% loss .5", {"acc": 0.915, "loss": 0.5}),
        ("acc {acc} % loss {loss}", "acc 91.5 % loss .5", {"acc": 0.915, "loss": 0.5}),
        ("{a} {b}", "5 %d 6", None),
        ("acc {acc}% loss {loss}", "acc 91.5 loss 1", {"acc": 91.5, "loss": 1}),
        ("loss={loss}", "loss=-inf", {"loss": -math.inf}),
        ("loss={loss},", "loss=Infinity, next", {"loss": math.inf}),
        ("top5 {acc}", "top1 70 top5 95", {"acc": 95}),
        ("{a}-{b}", "3-5", {"a": 3, "b": 5}),
        ("{a} {b}", "3 -5", {"a": 3, "b": -5}),
        ("v{version}", "v2.5", {"version": 2.5}),
        ("val/acc@1: {val/acc@1}", "val/acc@1: 0.5", {"val/acc@1": 0.5}),
        ("epoch {step} loss {loss}", "epoch three loss 1", None),
        ("top5 {acc}", "top1 70", None),
        ("loss {loss}", "loss high", None),
        ("{a}/{b}", "3\0/ 4", None),
    ],
)
def test_a_template_finds_what_stands_in_its_holes(
    template: str, line: str, found: dict[str, float] | None
) -> None:
    assert Template(template).numbers(line) == found


def test_a_number_that_is_none_is_found() -> None:
    found = Template("loss: {loss}").numbers("loss: NaN")
    assert found is not None
    assert math.isnan(found["loss"])


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{a}{b}", "put text between"),
        ("{a}5", "can't be told from"),
        ("loss", "no number to find"),
        ("epoch {step}", "besides the step"),
        ("{a} {a}", "stands in it twice"),
        ("loss {a", "not closed"),
        ("loss }", "not closed"),
        ("{} x", "can't be a metric's name"),
        ("{a b}", "can't be a metric's name"),
        ("{a}\n{b}", "one line"),
        ("x" * 501, "too long"),
        (" ".join(f"x{{n{i}}}" for i in range(65)), "at most 64"),
    ],
)
def test_a_template_that_can_not_work_is_refused_with_a_sentence(template: str, why: str) -> None:
    with pytest.raises(BadInput, match=re.escape(why)):
        Template(template)


EVIL = ("1 ", "1", "e1", "-", "- ", "nan ", "a1 ", "1.", "1e", "%", "1%", "{", "...", "\0", " ")


@pytest.mark.parametrize("piece", EVIL)
def test_a_line_that_is_made_to_take_for_ever_is_read_like_any_other(piece: str) -> None:
    """Whoever went back to try again would still be at it."""
    line = (piece * 40_000)[:60_000]
    for template in ("1 {a} 1 {b} 2", "{a}x", "e{a}e{b}z", "a{a} 5 b", "- {a} ... {b} x", "nan {a}"):
        Template(template).numbers(line)


words = st.text(st.characters(codec="ascii", categories=("L",)), min_size=1, max_size=5).filter(
    lambda word: word.lower() not in ("nan", "inf", "infinity")
)
numbers = st.floats(allow_nan=False) | st.integers(-(10**9), 10**9)


@given(st.lists(st.tuples(words, numbers), min_size=1, max_size=6), words, words)
def test_whatever_is_printed_by_a_template_is_found_by_it(
    pairs: list[tuple[str, float]], before: str, after: str
) -> None:
    template = " ".join(f"{word}= {{n{i}}}" for i, (word, _) in enumerate(pairs))
    line = " ".join(f"{word}= {number}" for word, number in pairs)
    found = Template(template).numbers(f"{before}: {line} {after}")
    assert found == {f"n{i}": float(number) for i, (_, number) in enumerate(pairs)}


@given(st.text(max_size=80), st.text(max_size=200))
def test_any_text_is_a_template_or_is_refused_and_any_line_is_read(template: str, line: str) -> None:
    try:
        made = Template(template)
    except BadInput:
        return
    found = made.numbers(line)
    assert found is None or all(isinstance(value, float) for value in found.values())
