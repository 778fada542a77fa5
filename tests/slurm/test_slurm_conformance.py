"""The Slurm engine keeps the protocol, on a real Slurm."""

import pytest
from slurm_bench import SlurmBench
from slurm_cluster import Cluster

from muster.engines.check import CHECKS, Check


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_slurm_engine_keeps_the_protocol(check: Check, cluster: Cluster) -> None:
    bench = SlurmBench(cluster)
    try:
        if (why_not := check.why_not(bench)) is not None:
            pytest.skip(why_not)
        check(bench)
    finally:
        bench.close()
