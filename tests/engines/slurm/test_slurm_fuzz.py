"""Whatever Slurm answers, Muster reads it or says in one sentence that it can't: nothing else."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slurm_situations import CARRIED

from muster.engines.slurm import attempts, hostlist, jobs, nodes, reasons, states, texts
from muster.engines.slurm.errors import BadAnswer, SlurmError, fault
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.tres import read_gres, read_tres
from muster.model.errors import BadInput

Read = Callable[[bytes, Notices], Any]
ANSWERS: list[tuple[str, Read]] = [
    ("22.05.8/batchA-running.squeue.json", jobs.read_jobs),
    ("24.11.5/preempting-now.squeue.json", jobs.read_jobs),
    ("26.05.5/running-gang.squeue.json", jobs.read_jobs),
    ("22.05.8/idle.sinfo.json", nodes.read_nodes),
    ("24.11.5/node-draining.sinfo.json", nodes.read_nodes),
    ("26.05.5/idle.scontrol-node.json", nodes.read_nodes),
    ("26.05.5/preempted-running-again.sacct-D.json", attempts.read_attempts),
]
TEXTS: list[tuple[str, Callable[[str], Any]]] = [
    ("22.05.8/preempted-running-again.sacct-D.txt", attempts.read_attempts_text),
    ("22.05.8/idle.scontrol-partition.txt", texts.read_partitions),
    ("26.05.5/running-gang.sstat.txt", texts.read_use),
]
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@cache
def _bytes(name: str) -> bytes:
    return (CARRIED / name).read_bytes()


def _tried(read: Callable[[], Any]) -> tuple[Any, str]:
    """What was read, or why not: in one line."""
    try:
        return read(), ""
    except (BadAnswer, BadInput) as error:
        refused = str(error)
    assert refused.isprintable()
    return (), refused


def _records(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return next(answer[key] for key in ("jobs", "nodes", "sinfo") if key in answer)


@pytest.mark.parametrize(("name", "read"), ANSWERS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_an_answer_that_breaks_off_anywhere_is_none(name: str, read: Read, data: st.DataObject) -> None:
    whole = _bytes(name).rstrip()
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(BadAnswer) as told:
        read(cut, Notices())
    assert "nothing was changed" in str(told.value)


@pytest.mark.parametrize(("name", "read"), ANSWERS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_value_of_another_kind_is_unknown_and_leaves_the_rest(
    name: str, read: Read, data: st.DataObject
) -> None:
    answer = json.loads(_bytes(name))
    record = data.draw(st.sampled_from(_records(answer)))
    key = data.draw(st.sampled_from(sorted(record)))
    record[key] = data.draw(ANY_JSON)
    notices = Notices()
    found, refused = _tried(lambda: read(json.dumps(answer).encode(), notices))
    if refused:
        assert key in ("job_id", "name")  # without them nothing can be said of whom it is
    for one in found:
        _meaning(one, notices)
    assert all("\n" not in notice for notice in notices.take())


@settings(max_examples=100, deadline=None)
@given(words=st.lists(st.sampled_from([*states.STATES, *states.FLAGS]) | st.text(max_size=12), max_size=4))
def test_states_are_known_or_said_to_be_unknown(words: list[str]) -> None:
    answer = json.loads(_bytes("26.05.5/running-gang.squeue.json"))
    answer["jobs"][0]["job_state"] = words
    notices = Notices()
    (job,) = jobs.read_jobs(json.dumps(answer).encode(), notices)
    standing = states.job_standing(job, notices)
    known = all(word in states.STATES or word in states.FLAGS for word in words)
    if not known:
        assert standing.state is None
        assert notices.take()


def _meaning(one: Any, notices: Notices) -> None:
    if hasattr(one, "priority"):
        states.job_standing(one, notices)
        assert str(reasons.why(one, notices))
        assert one.started_at is None or one.begun
    elif hasattr(one, "cpus"):
        states.node_health(one, notices)
    else:
        states.attempt_standing(one, notices)


@pytest.mark.parametrize(("name", "read"), TEXTS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_broken_text_is_read_or_refused(name: str, read: Callable[[str], Any], data: st.DataObject) -> None:
    whole = _bytes(name).decode()
    start = data.draw(st.integers(0, len(whole)))
    length = data.draw(st.integers(0, 30))
    changed = whole[:start] + data.draw(st.text(max_size=10)) + whole[start + length :]
    _tried(lambda: read(changed))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_garbage_is_refused_in_one_sentence(garbage: bytes) -> None:
    for read in (jobs.read_jobs, nodes.read_nodes, attempts.read_attempts):
        with pytest.raises(SlurmError) as told:
            read(garbage, Notices())
        assert "\n" not in str(told.value)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ngpu:[]()-,=%0129aMGIDXS/.", max_size=40))
def test_odd_lists_and_amounts_are_read_or_refused(text: str) -> None:
    for read in (hostlist.unfolded, hostlist.numbers, read_tres, read_gres):
        _tried(lambda read=read: read(text))


@settings(max_examples=100, deadline=None)
@given(code=st.integers(-255, 255), stdout=st.text(max_size=80), stderr=st.text(max_size=80))
def test_every_failure_has_a_sentence(code: int, stdout: str, stderr: str) -> None:
    said = str(fault("squeue", code, stdout, stderr))
    assert said
    assert len(said.splitlines()) == 1
