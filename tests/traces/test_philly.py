import pytest

from muster.model.errors import BadTrace
from muster.traces import philly

HEADER = "timestamp,duration,num_gpus,gpu_time,cluster"
LATER = "2017-10-09 07:01:55,66.0,1,66.0,11cb48"
EARLIER = "2017-10-09 06:13:03,2951.0,12,35412.0,6214e9"


def test_time_counts_from_the_earliest_submission(write):
    trace = philly.read(write("philly.csv", HEADER, LATER, EARLIER, ""))
    assert [entry.job.submitted_at for entry in trace.jobs] == [0.0, 2932.0]
    assert [entry.run_seconds for entry in trace.jobs] == [2951.0, 66.0]
    assert [entry.job.team for entry in trace.jobs] == ["6214e9", "11cb48"]
    assert trace.nodes == ()


def test_a_job_is_called_by_its_line_and_split_by_nodes(write):
    trace = philly.read(write("philly.csv", HEADER, LATER, EARLIER))
    assert [entry.job.id for entry in trace.jobs] == ["3", "2"]
    assert str(trace.jobs[0].job.gang) == "8 GPUs + 4 GPUs"


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (LATER.replace("66.0,1", "-66.0,1"), "duration '-66.0'"),
        (LATER.replace("66.0,1", "1e13,1"), "expected duration from 0 to 1e\\+12, found 1e\\+13"),
        (LATER.replace("2017-10-09", "2017-13-09"), "expected timestamp like 2026-01-05T10:00:00"),
        ("2017-10-09 07:01:55,66.0", "expected 5 fields, found 2"),
    ],
)
def test_a_broken_job_is_refused_by_line(write, broken, says):
    with pytest.raises(BadTrace, match=says) as refusal:
        philly.read(write("philly.csv", HEADER, EARLIER, broken))
    assert refusal.value.line == 3
