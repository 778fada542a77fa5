"""A local engine of its own for each test that asks for one."""

from collections.abc import Iterator

import pytest
from local_bench import LocalLab


@pytest.fixture
def lab() -> Iterator[LocalLab]:
    lab = LocalLab()
    yield lab
    lab.close()


@pytest.fixture(params=[True, False], ids=["groups", "no groups"])
def either(request: pytest.FixtureRequest) -> Iterator[LocalLab]:
    """With groups, if there are any here, and without."""
    lab = LocalLab(cgroups=request.param)
    if request.param and not lab.engine.means:
        lab.close()
        pytest.skip("groups can't be made here")
    yield lab
    lab.close()
