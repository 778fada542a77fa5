"""What Muster reads in recorded answers of real Slurm, against what was the case."""

from collections import Counter

import pytest
from slurm_situations import CARRIED, VERSIONS, WHOLE, Situation, situations, whole
from slurm_truth import problems_of


@pytest.mark.parametrize("situation", situations(CARRIED), ids=repr)
def test_a_carried_situation_is_read_as_it_was(situation: Situation) -> None:
    assert problems_of(situation) == []


@pytest.mark.skipif(not WHOLE, reason="MUSTER_RECORDED names no folder of recordings")
@pytest.mark.parametrize("version", VERSIONS)
def test_every_recorded_situation_is_read_as_it_was(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = {one: problems_of(one) for one in whole() if one.version == version}
    wrong = {one: found for one, found in told.items() if found}
    unasked = [one.name for one, found in told.items() if found is None]
    with capsys.disabled():
        right = len(told) - len(wrong) - len(unasked)
        print(f"\nSlurm {version}: {right} of {len(told)} situations read right, not asked for: {unasked}")  # noqa: T201
    assert wrong == {}
    assert Counter(found is None for found in told.values())[False] > 75
