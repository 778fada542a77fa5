"""Reading the queue again and again: what was read before is not read again, and nothing is taken for it."""

import json
from typing import Any

import pytest
from slurm_situations import CARRIED, VERSIONS

from muster.engines.slurm.errors import BadAnswer
from muster.engines.slurm.jobs import Queue, read_jobs
from muster.engines.slurm.notices import Notices

_QUEUES = [
    path
    for version in VERSIONS
    for path in sorted((CARRIED / version).glob("*.squeue.json"))
    if not json.loads(path.read_bytes())["errors"]
]
_GANG = CARRIED / "26.05.5" / "running-gang.squeue.json"
_ONE_NODE = CARRIED / "26.05.5" / "preempted-running-again.squeue.json"


def _answer(*records: dict[str, Any]) -> bytes:
    return json.dumps({**json.loads(_GANG.read_bytes()), "jobs": records}).encode()


def _record(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_GANG.read_bytes())["jobs"][0]
    return {**found, **fields}


def test_one_queue_reads_every_answer_as_a_reader_of_its_own_does() -> None:
    queue = Queue(Notices())
    for path in _QUEUES + _QUEUES[::-1]:
        answer = path.read_bytes()
        assert queue.read(answer) == queue.read(answer) == read_jobs(answer, Notices()), path


def test_a_record_that_says_what_it_said_is_the_same_value_wherever_it_stands() -> None:
    queue = Queue(Notices())
    first, second = queue.read(_answer(_record(job_id=1), _record(job_id=2)))
    other, again = queue.read(_answer(_record(job_id=2, comment="changed"), _record(job_id=1)))
    assert again is first
    assert other.id == second.id
    assert (second.comment, other.comment) == ("", "changed")


def test_what_has_left_the_queue_is_forgotten() -> None:
    queue = Queue(Notices())
    (first,) = queue.read(_answer(_record()))
    assert queue.read(_answer()) == ()
    (again,) = queue.read(_answer(_record()))
    assert again == first
    assert again is not first


def test_an_answer_that_breaks_off_changes_nothing_of_what_is_known() -> None:
    queue = Queue(Notices())
    whole = _answer(_record(job_id=1), _record(job_id=2))
    known = queue.read(whole)
    for end in range(0, len(whole), 97):
        with pytest.raises(BadAnswer):
            queue.read(whole[:end])
    with pytest.raises(BadAnswer):
        queue.read(_answer(_record(job_id=3), _record(job_id="4")))
    assert all(one is two for one, two in zip(queue.read(whole), known, strict=True))


def test_the_same_letters_from_another_version_are_read_anew() -> None:
    queue = Queue(Notices())
    answer = json.loads(_GANG.read_bytes())
    record = _record(stdout_expanded=None, standard_output="of-%j")
    (newest,) = queue.read(json.dumps({**answer, "jobs": [record]}).encode())
    answer["meta"]["slurm"]["release"] = "22.05.8"
    (oldest,) = queue.read(json.dumps({**answer, "jobs": [record]}).encode())
    assert (newest.output, oldest.output) == ("", f"of-{oldest.id}")


def test_a_job_on_one_node_holds_there_what_it_was_given_in_all() -> None:
    found = [job for job in read_jobs(_ONE_NODE.read_bytes(), Notices()) if len(job.seats) == 1]
    assert found
    for job in found:
        assert job.given is not None
        assert (job.seats[0].cpus, job.seats[0].memory_bytes) == (job.given.cpus, job.given.memory_bytes)


@pytest.mark.parametrize("path", _QUEUES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_by_cores_a_job_on_one_node_holds_the_same_as_in_all(path: Any) -> None:
    """Where Slurm does not say what it gave in all, its account of nodes is read: it says the same."""
    answer = json.loads(path.read_bytes())
    whole = read_jobs(json.dumps(answer).encode(), Notices())
    for record in answer["jobs"]:
        record["tres_alloc_str"] = record["tres_alloc_str"].replace(",mem=", ",vmem=")
    apart = read_jobs(json.dumps(answer).encode(), Notices())
    alone = [(one, two) for one, two in zip(whole, apart, strict=True) if len(one.seats) == 1]
    for one, two in alone:
        assert [(seat.cpus, seat.memory_bytes) for seat in one.seats] == [
            (seat.cpus, seat.memory_bytes) for seat in two.seats
        ]
