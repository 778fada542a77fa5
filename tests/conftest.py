"""What holds after every test: cases that were built were checked, and their books are right."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

import case
from room_check import validate

# The same examples in every run, and no verdict by the clock: how long one takes is the machine's affair.
settings.register_profile("muster", derandomize=True, deadline=None, database=None)
settings.load_profile("muster")


@pytest.fixture(autouse=True)
def _cases_are_checked() -> Iterator[None]:
    case.made.clear()
    yield
    for built in case.made:
        assert built.checked, "a case was built, and nothing was expected of it"
        validate(built.fold)
    case.made.clear()
