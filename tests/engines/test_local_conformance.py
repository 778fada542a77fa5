"""The local engine keeps the protocol, with and without groups."""

import pytest
from local_bench import LocalBench

from muster.engines.check import CHECKS, Check


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_the_local_engine_keeps_the_protocol(check: Check) -> None:
    bench = LocalBench()
    try:
        if (why_not := check.why_not(bench)) is not None:
            pytest.skip(why_not)
        check(bench)
    finally:
        bench.close()
