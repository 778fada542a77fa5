"""Conditions under which work ends, as people write them."""

import pytest

from muster.application.conditions import Comparison, Crosses, IsNan, Stalls, parse_condition
from muster.model.errors import BadInput


def test_each_kind_of_condition_is_read() -> None:
    assert parse_condition("val_acc >= 0.92") == Crosses("val_acc", Comparison.AT_LEAST, 0.92)
    assert parse_condition("val/acc<-1e-3") == Crosses("val/acc", Comparison.BELOW, -0.001)
    assert parse_condition("val_acc < 0.5 after 2h") == Crosses("val_acc", Comparison.BELOW, 0.5, 7200)
    assert parse_condition("val_loss stalls for 90m") == Stalls("val_loss", 5400)
    assert parse_condition(" loss is NaN ") == IsNan("loss")


WRONG = """
val_acc
val_acc >>= 1
val_acc >= high
0.9 <= acc
loss is big
acc > 1e999
acc > 1 after lunch
loss stalls
loss stalls for ever
acc >= 0.9 and loss < 1
a > --1
"""


@pytest.mark.parametrize("text", ["", *WRONG.split("\n")])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadInput, match="write it like"):
        parse_condition(text)
