"""What an address may say, and that it is refused in one sentence when it says something else."""

import pytest

from muster.model.errors import BadInput
from muster.web.address import chosen, count

BY = ("team", "owner")


def test_nothing_said_is_the_usual_and_a_known_word_is_taken() -> None:
    assert chosen({}, "by", BY, "team") == "team"
    assert chosen({"by": " "}, "by", BY, "team") == "team"
    assert chosen({"by": "owner"}, "by", BY, "team") == "owner"


def test_an_unknown_word_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(BadInput, match=r"unknown by 'pet'; known: team, owner"):
        chosen({"by": "pet"}, "by", BY, "team")


@pytest.mark.parametrize(("word", "many"), [("", 20), ("7", 7), ("0", 1), ("99999", 500)])
def test_a_count_is_within_its_bounds(word: str, many: int) -> None:
    assert count({"limit": word}, "limit", 20, 500) == many


@pytest.mark.parametrize("word", ["-1", "1.5", "many", "\u0661", "9" * 5000])
def test_what_is_no_count_is_refused(word: str) -> None:
    with pytest.raises(BadInput, match=r"from 1 to 500"):
        count({"limit": word}, "limit", 20, 500)
