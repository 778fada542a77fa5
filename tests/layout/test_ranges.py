"""Folded names, there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sites import one_sentence

from muster.layout.ranges import fold, fold_numbers, unfold
from muster.model.errors import BadInput

NAMES = st.from_regex(r"[a-z.][a-z0-9._-]{0,8}[0-9]{0,5}", fullmatch=True)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["gpu031", "gpu032", "gpu035", "login"], "login,gpu[031-032,035]"),
        (["gpu7"], "gpu7"),
        (["n9", "n10", "n11"], "n[9-11]"),
        (["n09", "n10"], "n[09-10]"),
        (["n1", "n01"], "n1,n01"),
        (["n" + "1" * 40], "n" + "1" * 40),
        ([], ""),
    ],
)
def test_names_are_folded(names: list[str], folded: str) -> None:
    assert sorted(fold(names).split(",")) == sorted(folded.split(","))


def test_numbers_are_folded() -> None:
    assert fold_numbers([7, 1, 2, 3]) == "1-3,7"
    assert fold_numbers([]) == ""


@pytest.mark.parametrize(
    ("folded", "names"),
    [
        ("gpub[001-003]", ["gpub001", "gpub002", "gpub003"]),
        ("r[1-2]n[9-10]", ["r1n9", "r1n10", "r2n9", "r2n10"]),
        ("a, b[2,5]-x", ["a", "b2-x", "b5-x"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
    ],
)
def test_names_are_unfolded_in_the_order_in_which_they_are_written(folded: str, names: list[str]) -> None:
    assert unfold(folded, 100) == names


@pytest.mark.parametrize(
    ("folded", "words"),
    [
        ("n[1-101]", "too many names"),
        ("n[1-20][1-20]", "means too many names"),
        ("n[1-60],m[1-60]", "means too many names"),
        (f"n[0-{'9' * 15}]", "too many names"),
        (f"n[{'9' * 5000}]", "more than 15 digits"),
        ("n[1", "don't close"),
        ("n]1[", "don't close"),
        ("n[[1]]", "don't close"),
        ("n[]", "no range of numbers"),
        ("n[1-]", "no range of numbers"),
        ("n[0-10/2]", "no range of numbers"),
        ("n[٣]", "no range of numbers"),
        ("n[5-3]", "goes backwards"),
        ("n[001-9]", "loses digits"),
        ("a,,b", "a name is empty"),
        ("", "a name is empty"),
        ("n[1-3],n2", "names 'n2' twice"),
        ("n[1][1][1][1][1]", "pairs of brackets"),
        ("n" * 20_000, "longer than"),
    ],
)
def test_what_is_no_range_or_too_much_is_refused_in_a_sentence(folded: str, words: str) -> None:
    with pytest.raises(BadInput, match=words.replace("[", r"\[")):
        unfold(folded, 100)


@given(st.lists(NAMES, unique=True, max_size=30))
def test_unfolding_undoes_folding(names: list[str]) -> None:
    assert sorted(unfold(fold(names), 1000) if names else []) == sorted(names)


@given(st.text(max_size=30))
def test_any_text_is_unfolded_or_refused(text: str) -> None:
    try:
        assert len(unfold(text, 1000)) <= 1000
    except BadInput as error:
        one_sentence(error)
