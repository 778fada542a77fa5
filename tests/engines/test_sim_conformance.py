"""The simulator keeps the protocol, and the suite that says so can say no."""

import msgspec
import pytest
from broken_engines import NOTICED_BY, GoesBackInTime, LinesUp
from sim_bench import SimBench, Simulator, Ticking

from muster.engines.check import CHECKS, Check, ProtocolBroken, check_engine

BY_NAME = {check.name: check for check in CHECKS}
NOTICES = [(engine, name) for engine, names in NOTICED_BY.items() for name in names]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
@pytest.mark.parametrize("kind", [Simulator, Ticking, LinesUp])
def test_the_simulator_keeps_the_protocol(kind: type[Simulator], check: Check) -> None:
    bench = SimBench(kind)
    if (why_not := check.why_not(bench)) is not None:
        pytest.skip(why_not)
    check(bench)


def test_all_checks_are_run_but_that_of_the_other_kind_of_time() -> None:
    assert check_engine(lambda: SimBench(LinesUp)) == {"real time passes by itself": "it needs real time"}
    skipped = check_engine(lambda: SimBench(Ticking))
    assert [name for name, why in skipped.items() if "lines_up" not in why] == [
        "virtual time passes only when observed"
    ]


@pytest.mark.parametrize(("engine", "name"), NOTICES)
def test_a_broken_engine_is_noticed(engine: type[Simulator], name: str) -> None:
    with pytest.raises(ProtocolBroken, match=name):
        BY_NAME[name](SimBench(engine))


def test_every_check_notices_a_broken_engine() -> None:
    assert {name for _, name in NOTICES} == set(BY_NAME)


def test_the_first_check_that_fails_is_named_with_what_was_seen() -> None:
    wanted = r"^time never goes back: time went back from [\d.]+ s to -[\d.]+ s$"
    with pytest.raises(ProtocolBroken, match=wanted):
        BY_NAME["time never goes back"](SimBench(GoesBackInTime))
    with pytest.raises(ProtocolBroken, match=r"^the inventory names each node once and is stable"):
        check_engine(lambda: SimBench(GoesBackInTime))


@pytest.mark.parametrize("claim", ["evicts", "gangs", "shares_gpus"])
def test_what_is_not_claimed_is_skipped_by_name(claim: str) -> None:
    class Modest(Simulator):
        capabilities = msgspec.structs.replace(Simulator.capabilities, **{claim: False})

    skipped = check_engine(lambda: SimBench(Modest))
    wanted = {check.name for check in CHECKS if claim in check.needs}
    assert wanted
    assert {name for name, why in skipped.items() if claim in why} == wanted


def test_a_bench_that_cannot_lose_nodes_skips_what_needs_it() -> None:
    class Steady:
        """The bench without ``lose`` and ``restore``."""

        def __init__(self) -> None:
            bench = SimBench()
            self.engine, self.beat_seconds = bench.engine, bench.beat_seconds
            self.submit, self.close = bench.submit, bench.close

    skipped = check_engine(Steady)
    assert sum("loses nodes" in why for why in skipped.values()) == 2


def test_an_engine_that_crashes_is_told_with_the_check_that_it_crashed_in() -> None:
    class Crashes(Simulator):
        def act(self, action: object) -> None:
            raise ZeroDivisionError

    with pytest.raises(ProtocolBroken, match=r"the inventory .*ZeroDivisionError\(\) was raised"):
        check_engine(lambda: SimBench(Crashes))


def test_the_bench_is_closed_even_when_a_check_fails() -> None:
    closed = []

    class Counted(SimBench):
        def close(self) -> None:
            closed.append(self)

    with pytest.raises(ProtocolBroken):
        check_engine(lambda: Counted(GoesBackInTime))
    assert closed
