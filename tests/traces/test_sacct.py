import pytest

from muster.model.errors import BadInput, BadTrace
from muster.model.units import GIB, MIB
from muster.traces import sacct

COLUMNS = (
    "JobID|JobName|User|Account|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|ReqCPUS|ReqMem|"
    "ReqTRES|AllocTRES|Partition|State|Priority"
)
TRAIN = (
    "101|train|ann|vision|2026-01-05T10:00:00|2026-01-05T10:05:00|2026-01-05T11:05:00|3600|120|2|32|"
    "128G|billing=32,cpu=32,gres/gpu:a100=8,gres/gpu=8,mem=128G,node=2||gpu|COMPLETED|4294"
)
ARRAY = (
    "102_3|sweep|bob|text|2026-01-05T09:00:00|Unknown|Unknown|60|UNLIMITED|1|4|4000M||"
    "cpu=4,gres/gpu=1|gpu|FAILED|1"
)


def jobs(write, *lines: str):
    return sacct.read(write("history.txt", *lines)).jobs


def shapes(write, header: str, row: str):
    (entry,) = jobs(write, header, row)
    return [(part.count, part.shape) for part in entry.job.gang.parts]


def test_a_job_is_read_with_its_owner_its_times_and_its_limit(write):
    sweep, train = jobs(write, COLUMNS, TRAIN, ARRAY)
    assert (train.job.owner, train.job.team, train.job.name) == ("ann", "vision", "train")
    assert (sweep.job.submitted_at, train.job.submitted_at) == (0.0, 3600.0)
    assert (train.run_seconds, train.job.time_limit_seconds) == (3600.0, 7200.0)
    assert (sweep.job.id, sweep.job.time_limit_seconds) == ("102_3", None)


def test_what_was_asked_is_spread_evenly_over_the_nodes(write):
    ((count, shape),) = shapes(write, COLUMNS, TRAIN)
    assert (count, shape.gpus, shape.gpu_models) == (2, 4, ("a100",))
    assert (shape.cpus_milli, shape.memory_bytes) == (16_000, 64 * GIB)


def test_gpus_that_do_not_divide_by_the_nodes_make_two_kinds_of_parts(write):
    row = TRAIN.replace("gres/gpu:a100=8,gres/gpu=8", "gres/gpu:a100=5")
    assert [(n, shape.gpus) for n, shape in shapes(write, COLUMNS, row)] == [(1, 3), (1, 2)]


def test_columns_are_found_in_any_order_and_clocks_are_read(write):
    header = "Elapsed|Submit|Timelimit|JobID"
    (entry,) = jobs(write, header, "1-02:00:00|2026-01-05T10:00:00|2-00:00:00|7")
    assert (entry.job.id, entry.run_seconds) == ("7", 93_600.0)
    assert entry.job.time_limit_seconds == 172_800.0
    assert entry.job.gang.asked().cpus_milli == 1000


@pytest.mark.parametrize(
    ("memory", "bytes_each"),
    [
        ("4Gc", 8 * GIB),
        ("16Gn", 16 * GIB),
        ("16G", 8 * GIB),
        ("4000M", 2000 * MIB),
        ("4000", 2000 * MIB),
        ("0n", 0),
        ("", 3 * GIB),
    ],
)
def test_memory_may_be_told_by_cpu_by_node_or_in_all(write, memory, bytes_each):
    header = "JobID|Submit|ElapsedRaw|NNodes|NCPUS|ReqMem|ReqTRES"
    ((_, shape),) = shapes(write, header, f"1|2026-01-05T10:00:00|9|2|4|{memory}|mem=6G")
    assert shape.memory_bytes == bytes_each


def test_steps_and_jobs_that_never_ran_are_passed_over(write):
    step = TRAIN.replace("101|", "101.batch|")
    cancelled = ARRAY.replace("102_3", "103").replace("|60|", "|0|")
    cancelled = cancelled.replace("FAILED", "CANCELLED by 1000")
    quick = ARRAY.replace("102_3", "104").replace("|60|", "|0|")
    trace = sacct.read(write("history.txt", COLUMNS, TRAIN, step, cancelled, quick))
    assert [entry.job.id for entry in trace.jobs] == ["104", "101"]
    assert trace.passed_over == 1


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (ARRAY.replace("sweep", "a|b"), "expected 17 fields, found 18"),
        (ARRAY.replace("2026-01-05T09:00:00", "Unknown"), "expected Submit like 2026"),
        (ARRAY.replace("|60|", "||"), "expected a run time in ElapsedRaw or Elapsed"),
        (ARRAY.replace("4000M", "lots"), "'lots' is not a size"),
        (ARRAY.replace("4000M", "900Pc"), "expected ReqMem in bytes from 0"),
        (ARRAY.replace("gres/gpu=1", "gres/gpu=x"), "gres/gpu 'x' is not a number"),
        (ARRAY.replace("102_3", "101"), "expected every job once, found '101' of line 2 again"),
    ],
)
def test_a_broken_job_is_refused_by_line(write, broken, says):
    with pytest.raises(BadTrace, match=says) as refusal:
        jobs(write, COLUMNS, TRAIN, broken)
    assert refusal.value.line == 3


def test_a_history_in_which_nothing_ran_is_refused(write):
    with pytest.raises(BadInput, match="holds no job that ran"):
        jobs(write, COLUMNS)
