"""What agents tell: refused if it can't be, summed over nodes, and never a jump."""

import contextlib
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.errors import BadInput
from muster.model.usage import ForeignProcess, GpuReading, GpuShown, NodeReading, Reading
from muster.monitor.agents.board import Board, Look
from muster.monitor.agents.message import Told, check
from muster.monitor.meters.gather import Attended
from muster.monitor.rates import reading_at_start, sample_between

NUMBERS = {("s1", 1): (1,)}
AHEAD = 500.0  # of the server's boot, the nodes'


class Cluster:
    """Nodes with two GPUs each, by a clock that is moved by hand; ``Board.now`` is 1,000 ahead of it."""

    def __init__(self, *nodes: str, gpus: int = 2) -> None:
        self.at = 100.0
        self.board = Board(lambda: dict.fromkeys(nodes, gpus), lambda: self.at + 1000.0, 5.0, lambda: self.at)

    def tells(self, node: str, *readings: Reading, delay: float = 0.0, **more: object) -> None:
        sent = self.at + AHEAD - delay
        self.board.hear(Told(node=node, since_boot_seconds=sent, readings=readings, **more))  # type: ignore[arg-type]

    def shows(self, number: int = 1, cpu: float | None = 1.0, made: int = 7, **more: object) -> Reading:
        return Reading(
            job=str(number), attempt=made, at=0.0, since_boot_seconds=self.at + AHEAD, cpu_seconds=cpu, **more
        )  # type: ignore[arg-type]

    def read(self, *nodes: str, **more: object) -> Reading | Look:
        one = Attended("s1", 1, (), nodes=nodes or ("a",), **more)  # type: ignore[arg-type]
        return self.board.read([one], NUMBERS)["s1", 1]


def seen(found: Reading | Look) -> Reading:
    assert isinstance(found, Reading)
    return found


# --- Who is believed -------------------------------------------------------------------------------


def test_an_attempt_is_read_from_agents_when_all_of_its_nodes_have_one() -> None:
    c = Cluster("a", "b")
    c.tells("a", c.shows(cpu=3.0, memory_bytes=10))
    assert c.read("a", "b") is Look.NOBODY
    c.tells("b", c.shows(cpu=4.0, memory_bytes=20))
    found = seen(c.read("a", "b"))
    assert (found.cpu_seconds, found.memory_bytes, found.by) == (7.0, 30, "agent")
    assert (found.at, found.since_boot_seconds) == (1100.0, 100.0)


def test_an_agent_that_is_silent_for_long_is_no_longer_reckoned_with() -> None:
    c = Cluster("a")
    c.tells("a", c.shows())
    c.at += 14.0
    assert c.board.said()["a"].is_fresh
    seen(c.read())
    c.at += 2.0
    assert c.read() is Look.NOBODY
    assert (c.board.said()["a"].at, c.board.said()["a"].is_fresh) == (1100.0, False)
    assert c.board.nodes() == {}


def test_one_that_speaks_seldom_is_believed_for_as_long_as_it_said() -> None:
    c = Cluster("a")
    c.tells("a", c.shows(), period_seconds=60.0)
    c.at += 170.0
    seen(c.read())


def test_what_was_read_before_the_attempt_began_is_of_the_one_before_it() -> None:
    c = Cluster("a")
    c.tells("a", c.shows(cpu=900.0))
    c.at += 3.0
    assert c.read(since=1102.0) is Look.LATER
    c.tells("a", c.shows(cpu=0.5, made=8))
    assert seen(c.read(since=1102.0)).cpu_seconds == 0.5


def test_a_clock_of_slurms_that_is_ahead_of_ours_keeps_nobody_waiting() -> None:
    c = Cluster("a")
    c.tells("a", c.shows())
    assert c.read(since=5000.0) is not Look.NOBODY
    c.at += 5.0
    c.tells("a", c.shows(cpu=2.0))
    assert seen(c.read(since=5000.0)).cpu_seconds == 2.0


def test_nothing_new_since_the_last_look_is_no_reading() -> None:
    c = Cluster("a")
    c.tells("a", c.shows())
    seen(c.read())
    assert c.read() is Look.LATER


def test_a_job_that_has_just_begun_is_waited_for_so_that_one_source_tells_all_of_it() -> None:
    c = Cluster("a")
    c.tells("a", c.shows(number=2))
    assert c.read(since=1098.0) is Look.LATER
    c.at += 2.0
    c.tells("a", c.shows(cpu=1.5))
    assert seen(c.read(since=1098.0)).cpu_seconds == 1.5


def test_of_a_job_that_no_agent_ever_saw_slurm_is_asked() -> None:
    c = Cluster("a")
    c.tells("a", c.shows(number=2))
    assert c.read() is Look.NOBODY


def test_the_agent_of_one_job_speaks_for_that_one() -> None:
    c = Cluster("a")
    c.tells("a", c.shows(), only=1)
    assert seen(c.read()).cpu_seconds == 1.0
    assert c.board.said() == {}
    assert c.board.speaking(["a"], [1]) == 1
    assert c.board.speaking(["a"], [2]) == 0


def test_a_node_that_is_not_known_and_jobs_that_are_not_there_are_ignored_and_counted() -> None:
    c = Cluster("a")
    c.read()
    one, other = c.shows(1), c.shows(2)
    heard = c.board.hear(Told(node="a", since_boot_seconds=1.0, readings=(one, other)))
    assert (heard.knows_node, heard.taken, heard.ignored) == (True, 1, 1)
    heard = c.board.hear(Told(node="x", since_boot_seconds=1.0, readings=(one, other)))
    assert (heard.knows_node, heard.taken, heard.ignored) == (False, 0, 2)
    assert c.board.said().keys() == {"a"}


def test_what_one_agent_tells_says_nothing_of_another_node() -> None:
    c = Cluster("a", "b")
    c.tells("a", c.shows(cpu=1.0), own=NodeReading(at=0.0, memory_used_bytes=1))
    c.tells("b", c.shows(cpu=1e6), own=NodeReading(at=0.0, memory_used_bytes=2))
    assert seen(c.read("a")).cpu_seconds == 1.0
    assert {node: read.memory_used_bytes for node, read in c.board.nodes().items()} == {"a": 1, "b": 2}


# --- Clocks ----------------------------------------------------------------------------------------


def test_words_that_were_long_underway_do_not_bend_time() -> None:
    c = Cluster("a")
    c.tells("a", c.shows(cpu=0.0))
    before = seen(c.read())
    c.at += 5.0
    late = c.shows(cpu=5.0)
    c.at += 3.0  # the network
    c.board.hear(Told(node="a", since_boot_seconds=c.at + AHEAD - 3.0, readings=(late,)))
    after = seen(c.read())
    assert after.since_boot_seconds - before.since_boot_seconds == pytest.approx(5.0, abs=0.01)


def test_after_a_boot_the_nodes_clock_is_another() -> None:
    c = Cluster("a")
    c.tells("a", c.shows())
    c.at += 5.0
    again = msgspec.structs.replace(c.shows(), since_boot_seconds=2.0)
    c.board.hear(Told(node="a", since_boot_seconds=2.0, readings=(again,)))
    assert seen(c.read()).since_boot_seconds == c.at


# --- Counters --------------------------------------------------------------------------------------


def test_a_group_that_was_made_again_goes_on_where_the_last_one_ended() -> None:
    c = Cluster("a")
    c.tells("a", c.shows(cpu=10.0, memory_bytes=5, made=1))
    assert seen(c.read()).cpu_seconds == 10.0
    c.at += 5.0
    c.tells("a")  # between two steps
    found = seen(c.read())
    assert (found.cpu_seconds, found.memory_bytes) == (10.0, 0)
    c.at += 5.0
    c.tells("a", c.shows(cpu=1.0, memory_bytes=6, made=2))
    found = seen(c.read())
    assert (found.cpu_seconds, found.memory_bytes) == (11.0, 6)


def test_between_two_kinds_of_meters_nothing_is_reckoned() -> None:
    slurm = Reading(job="1", attempt=1, at=0, since_boot_seconds=0, cpu_seconds=5.0, by="slurm")
    agent = Reading(job="1", attempt=1, at=5, since_boot_seconds=5, cpu_seconds=25.0, by="agent")
    later = Reading(job="1", attempt=1, at=10, since_boot_seconds=10, cpu_seconds=30.0, by="agent")
    assert sample_between(slurm, agent) is None
    sample = sample_between(agent, later)
    assert sample is not None
    assert sample.cpus == 1.0
    first = sample_between(reading_at_start("1", 1, 0, 0), agent)
    assert first is not None
    assert first.cpus == 5.0


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 9), st.booleans()), min_size=1, max_size=40))
def test_whatever_is_made_anew_or_missed_what_is_counted_never_falls_and_is_all_that_was_used(
    words: list[tuple[str, float, bool]],
) -> None:
    """Each word: on a node so much more is used, perhaps in a new group."""
    c = Cluster("a", "b")
    counted, made = {"a": 0.0, "b": 0.0}, {"a": 1, "b": 1}
    total, last = 0.0, 0.0
    for node, more, is_new in words:
        c.at += 1.0
        if is_new:
            made[node], counted[node] = made[node] + 1, 0.0
        counted[node] += more
        total += more
        for each in ("a", "b"):
            c.tells(each, c.shows(cpu=counted[each], made=made[each]))
        found = seen(c.read("a", "b"))
        assert found.cpu_seconds is not None
        assert found.cpu_seconds >= last - 1e-9
        last = found.cpu_seconds
    assert math.isclose(last, total, abs_tol=1e-6)


# --- GPUs ------------------------------------------------------------------------------------------


def test_gpus_are_told_in_the_order_of_nodes_and_numbers_and_unknown_where_nobody_tells() -> None:
    c = Cluster("a", "b")
    c.tells("a", c.shows(gpus=(GpuShown(0, 0.1), GpuShown(1, 0.2, 7))))
    one = Attended("s1", 1, (), (1, 0, 1), nodes=("a", "b"), device_nodes=("a", "b", "b"))
    assert c.board.gpus_of(one, [1]) == (GpuShown(1, 0.2, 7), GpuShown(0), GpuShown(1))
    c.tells("b", c.shows(gpus=(GpuShown(0, 0.3), GpuShown(1, 0.4))))
    found = seen(c.board.read([one], NUMBERS)["s1", 1])
    assert [gpu.busy for gpu in found.gpus] == [0.2, 0.3, 0.4]


def test_a_device_beyond_slurms_count_leaves_all_of_that_node_unknown() -> None:
    c = Cluster("a")
    own = NodeReading(at=0.0, memory_used_bytes=1, gpus=(GpuReading(index=2, busy=0.5),))
    c.tells("a", c.shows(gpus=(GpuShown(0, 0.1), GpuShown(2, 0.2))), own=own)
    assert seen(c.read(devices=(0,), device_nodes=("a",))).gpus == (GpuShown(0),)
    assert c.board.nodes()["a"].gpus == ()


# --- What is refused -------------------------------------------------------------------------------

FINE = Reading(job="1", attempt=1, at=0.0, since_boot_seconds=1.0, cpu_seconds=1.0)


@pytest.mark.parametrize(
    "reading",
    [
        msgspec.structs.replace(FINE, cpu_seconds=math.nan),
        msgspec.structs.replace(FINE, cpu_seconds=math.inf),
        msgspec.structs.replace(FINE, cpu_seconds=-1.0),
        msgspec.structs.replace(FINE, memory_bytes=-1),
        msgspec.structs.replace(FINE, memory_bytes=1 << 63),
        msgspec.structs.replace(FINE, gpus=(GpuShown(0, -0.5),)),
        msgspec.structs.replace(FINE, gpus=tuple(map(GpuShown, range(1000)))),
        msgspec.structs.replace(FINE, job="../../etc"),
        msgspec.structs.replace(FINE, job="٣"),
        msgspec.structs.replace(FINE, job="1" * 40),
    ],
)
def test_what_no_meter_shows_is_refused(reading: Reading) -> None:
    with pytest.raises(BadInput):
        check(Told(node="a", since_boot_seconds=1.0, readings=(reading,)))


def test_what_is_too_much_is_refused() -> None:
    stranger = ForeignProcess(1, "x" * 5000, None)
    own = NodeReading(at=0.0, gpus=(GpuReading(index=0, foreign=(stranger,)),))
    for told in (
        Told(node="a", since_boot_seconds=1.0, readings=(FINE, FINE)),
        Told(node="a", since_boot_seconds=1.0, only=2, readings=(FINE,)),
        Told(node="a", since_boot_seconds=1.0, own=own),
    ):
        with pytest.raises(BadInput):
            check(told)
    many = {"node": "a", "since_boot_seconds": 1.0, "readings": [msgspec.to_builtins(FINE)] * 5000}
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(many, Told)


@given(st.from_type(Told))
def test_whatever_is_told_it_is_refused_in_a_sentence_or_taken(told: Told) -> None:
    board = Board(lambda: {told.node: 2}, lambda: 0.0, 5.0, lambda: 100.0)
    with contextlib.suppress(BadInput):
        board.hear(told)
    board.read([Attended("s1", 1, (), nodes=(told.node,))], NUMBERS)
    board.nodes()
