import gzip
from pathlib import Path

import pytest

from muster.model.errors import BadInput, BadTrace
from muster.traces import swf

HEADER = ("; Version: 2.2", "; MaxNodes: 64", ";  MaxProcs: 100 (no front end)", ";")
FULL = "    1     10 964980  97225   56     -1    -1   60 210000    -1  1   4   3   7 -1 -1 -1 -1"
BARE = "2 0 -1 0 16 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1"


def test_a_job_asks_its_requested_processors_of_the_pool(write):
    trace = swf.read(write("KTH-SP2.swf", *HEADER, FULL, BARE))
    bare, full = trace.jobs
    assert full.job.gang.asked().cpus_milli == 60_000
    assert (full.job.owner, full.job.team, full.job.name) == ("u4", "g3", "x7")
    assert (full.job.submitted_at, full.run_seconds) == (10.0, 97_225.0)
    assert full.job.time_limit_seconds == 210_000.0
    assert bare.job.gang.asked().cpus_milli == 16_000
    assert (bare.job.owner, bare.job.team, bare.job.name) == ("", "", "")
    assert (bare.job.time_limit_seconds, bare.run_seconds) == (None, 0.0)


@pytest.mark.parametrize(
    ("header", "cpus"),
    [(HEADER, [100_000]), (("; MaxProcs: -1", "; MaxNodes: 64"), [64_000]), (("; none",), [])],
)
def test_the_pool_is_as_large_as_the_header_says(write, header, cpus):
    nodes = swf.read(write("log.swf", *header, BARE)).nodes
    assert [node.cpus_milli for node in nodes] == cpus


def test_a_job_larger_than_the_machine_is_kept(write):
    large = FULL.replace("  60 ", " 600 ")
    assert swf.read(write("log.swf", *HEADER, large)).jobs[0].job.gang.asked().cpus_milli == 600_000


def test_jobs_of_unknown_run_or_size_are_passed_over_and_counted(write):
    no_run = BARE.replace("2 0 -1 0 16", "3 0 -1 -1 16")
    no_size = BARE.replace("2 0 -1 0 16", "4 0 -1 5 -1")
    zero_size = BARE.replace("2 0 -1 0 16", "5 0 -1 5 0")
    trace = swf.read(write("log.swf", *HEADER, no_run, no_size, zero_size, FULL))
    assert [entry.job.id for entry in trace.jobs] == ["1"]
    assert trace.passed_over == 3


def test_the_stretches_of_a_checkpointed_job_are_no_jobs_of_their_own(write):
    stretch = BARE.replace("-1 -1 -1 1 -1", "-1 -1 -1 2 -1")
    trace = swf.read(write("log.swf", *HEADER, BARE, stretch))
    assert (len(trace.jobs), trace.passed_over) == (1, 0)


def test_a_gzipped_log_is_read(tmp_path: Path):
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress("\n".join((*HEADER, FULL)).encode()))
    trace = swf.read(str(path))
    assert (trace.name, len(trace.jobs)) == ("log", 1)


def test_a_cut_gzip_file_is_refused_in_a_sentence(tmp_path: Path):
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(FULL.encode())[:-9])
    with pytest.raises(BadInput, match="broken gzip file"):
        swf.read(str(path))


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("1 2 3", "expected 18 fields, found 3"),
        (BARE.replace("2 0 -1 0", "2 0 -1 -7"), "run time '-7'"),
        (BARE.replace("2 0 -1 0", "2 x -1 0"), "submit time 'x' is not a number"),
        (BARE.replace(" 16 ", " 1.5 "), "expected processors as a whole number"),
        (FULL, "expected every job once, found '1' of line 5 again"),
    ],
)
def test_a_broken_job_is_refused_by_line(write, broken, says):
    with pytest.raises(BadTrace, match=says) as refusal:
        swf.read(write("log.swf", *HEADER, FULL, "; a note", broken))
    assert refusal.value.line == 7
