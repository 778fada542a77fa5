"""A cluster for each process that runs these tests; without Slurm they are left out, with one reason.

Most of the time is Slurm's own pace, so several clusters side by side finish sooner than one.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_bench import SlurmLab
from slurm_cluster import Cluster, started, why_not

from muster.engines.slurm.settings import SlurmSettings

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mine = [item for item in items if _HERE in item.path.parents]
    if mine and (reason := why_not()) is not None:
        for item in mine:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    cluster = started()
    yield cluster
    cluster.stop()


@pytest.fixture
def lab(cluster: Cluster) -> Iterator[SlurmLab]:
    """An engine by itself, in ``govern``."""
    with contextlib.closing(SlurmLab(cluster, SlurmSettings())) as lab:
        yield lab


@pytest.fixture(autouse=True)
def _nothing_is_left(cluster: Cluster) -> Iterator[None]:
    """Whatever a test leaves in the queue is cancelled, and the nodes are as they were."""
    yield
    cluster.tidy()
