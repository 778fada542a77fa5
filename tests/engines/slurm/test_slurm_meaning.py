"""What Slurm's words mean to Muster: states, reasons, lists, amounts, versions."""

import json
import math
import re
from typing import Any

import pytest
from slurm_situations import CARRIED

from muster.engines.slurm import jobs, reasons, states, texts
from muster.engines.slurm.answers import Exit, Gpus, SlurmAttempt, SlurmJob, SlurmNode
from muster.engines.slurm.attempts import COLUMNS
from muster.engines.slurm.errors import BadAnswer
from muster.engines.slurm.hostlist import numbers, unfolded
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.reasons import SENTENCES, why
from muster.engines.slurm.states import attempt_standing, job_standing, node_health
from muster.engines.slurm.tres import read_gres, read_tres
from muster.engines.slurm.versions import Version, parse_version
from muster.model.errors import BadInput
from muster.model.events import Outcome
from muster.model.node import Health
from muster.model.state import State

RUNNING = CARRIED / "26.05.5" / "running-gang.squeue.json"


def _changed(**fields: Any) -> bytes:
    answer = json.loads(RUNNING.read_bytes())
    answer["jobs"][0].update(fields)
    return json.dumps(answer).encode()


def _job(*words: str, **fields: Any) -> SlurmJob:
    return SlurmJob(1, words, **fields)


# --- States ---


@pytest.mark.parametrize(
    ("words", "state", "outcome"),
    [
        (["PENDING"], State.QUEUED, None),
        (["RUNNING"], State.RUNNING, None),
        (["RUNNING", "CONFIGURING"], State.STARTING, None),
        (["RUNNING", "POWER_UP_NODE"], State.STARTING, None),
        (["RUNNING", "RESIZING"], State.RUNNING, None),
        (["RUNNING", "SIGNALING"], State.RUNNING, None),
        (["RUNNING", "STOPPED"], State.SUSPENDED, None),
        (["SUSPENDED"], State.SUSPENDED, None),
        (["COMPLETED", "COMPLETING"], State.STOPPING, None),
        (["PENDING", "COMPLETING"], State.STOPPING, None),
        (["COMPLETED", "STAGE_OUT"], State.STOPPING, None),
        (["PENDING", "REQUEUED"], State.QUEUED, None),
        (["PENDING", "SPECIAL_EXIT"], State.HELD, None),
        (["PENDING", "REQUEUE_HOLD"], State.HELD, None),
        (["PENDING", "RESV_DEL_HOLD"], State.HELD, None),
        (["PENDING", "CONFIGURING"], State.QUEUED, None),
        (["COMPLETED"], State.ENDED, Outcome.SUCCEEDED),
        (["CANCELLED"], State.ENDED, Outcome.STOPPED),
        (["FAILED"], State.ENDED, Outcome.FAILED),
        (["TIMEOUT"], State.ENDED, Outcome.TIMEOUT),
        (["DEADLINE"], State.ENDED, Outcome.TIMEOUT),
        (["OUT_OF_MEMORY"], State.ENDED, Outcome.OUT_OF_MEMORY),
        (["NODE_FAIL"], State.ENDED, Outcome.NODE_LOST),
        (["BOOT_FAIL"], State.ENDED, Outcome.NODE_LOST),
        (["PREEMPTED"], State.ENDED, Outcome.STOPPED),
        (["PENDING", "REVOKED"], State.ENDED, Outcome.STOPPED),
        (["COMPLETING"], State.STOPPING, None),  # as 22.05 has it: a flag alone
        (["CONFIGURING"], State.STARTING, None),
        (["REQUEUED"], State.QUEUED, None),
        (["RESIZING"], State.RUNNING, None),
    ],
)
def test_each_state_means_one_of_ours(words: list[str], state: State, outcome: Outcome | None) -> None:
    notices = Notices()
    found = job_standing(_job(*words), notices)
    assert (found.state, found.outcome, notices.take()) == (state, outcome, [])


@pytest.mark.parametrize("reason", ["JobHeldUser", "JobHeldAdmin", "BadConstraints"])
def test_who_is_held_is_held_by_a_reason(reason: str) -> None:
    assert job_standing(_job("PENDING", reason=reason), Notices()).state is State.HELD


def test_who_has_no_priority_is_held_but_not_who_is_suspended() -> None:
    assert job_standing(_job("PENDING", priority=0), Notices()).state is State.HELD
    assert job_standing(_job("SUSPENDED", priority=0), Notices()).state is State.SUSPENDED


@pytest.mark.parametrize("words", [("PREEMPTED",), ("PENDING", "REQUEUED"), ("REQUEUED",)])
def test_a_try_that_was_taken_back_is_over_and_its_job_is_not(words: tuple[str, ...]) -> None:
    attempt = SlurmAttempt(1, words)
    found = attempt_standing(attempt, Notices())
    assert (found.state, found.vacated) == (State.ENDED, True)


def test_an_unknown_state_is_told_once_and_means_nothing() -> None:
    notices = Notices()
    for _ in range(3):
        found = job_standing(_job("RUNNING", "LEVITATING"), notices)
        assert (found.state, found.unknown) == (None, ("LEVITATING",))
    (told,) = notices.take()
    assert "'LEVITATING'" in told
    assert notices.take() == []


@pytest.mark.parametrize(
    ("words", "health"),
    [
        (("IDLE",), Health.UP),
        (("MIXED", "PLANNED"), Health.UP),
        (("IDLE", "COMPLETING"), Health.UP),
        (("MIXED", "DRAIN"), Health.DRAINED),
        (("IDLE", "RESERVED", "MAINTENANCE"), Health.DRAINED),
        (("MIXED", "NOT_RESPONDING"), Health.DOWN),
        (("DOWN", "DRAIN"), Health.DOWN),
        (("UNKNOWN",), None),
    ],
)
def test_a_nodes_states_say_whether_something_can_start(
    words: tuple[str, ...], health: Health | None
) -> None:
    notices = Notices()
    assert node_health(SlurmNode("n", words), notices) is health
    assert notices.take() == []


# --- Reasons ---


@pytest.mark.parametrize("reason", sorted(SENTENCES))
def test_each_reason_is_a_sentence_with_something_to_do(reason: str) -> None:
    found = why(_job("PENDING", reason=reason), Notices())
    assert found.known
    assert found.todo
    assert re.match(r"[\w\"]", str(found))


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("QOSMaxGRESPerUser", "its QOS is at its limit of GPUs or other GRES for one user"),
        ("AssocGrpCPUMinutesLimit", "its account is at its limit of cpus × minutes"),
        (
            "AssocGrpGRESRunMinutes",
            "its account is at its limit of GPUs or other GRES × minutes of what runs",
        ),
        ("QOSMaxWallDurationPerJobLimit", "its QOS allows less time for one job"),
        ("QOSMinCpuNotSatisfied", "its QOS demands more cpus than it asks for"),
        ("AssocMaxJobsLimit", "its account is at its limit of running jobs"),
        ("QOSGrpSubmitJobsLimit", "its QOS is at its limit of jobs at all"),
        ("AssocGrpNodeLimit", "its account is at its limit of nodes"),
    ],
)
def test_limits_of_accounting_are_put_into_words(reason: str, said: str) -> None:
    assert why(_job("PENDING", reason=reason), Notices()).sentence == said


def test_a_reason_names_the_nodes_that_are_missing() -> None:
    job = _job("PENDING", reason="ReqNodeNotAvail", detail="ReqNodeNotAvail, UnavailableNodes:node3")
    assert "(node3)" in str(why(job, Notices()))


def test_an_unknown_reason_is_shown_as_it_is_and_told_once() -> None:
    notices = Notices()
    for _ in range(2):
        found = why(_job("PENDING", reason="MoonPhase"), notices)
    assert not found.known
    assert "MoonPhase" in str(found)
    assert len(notices.take()) == 1


def test_what_will_never_start_says_so() -> None:
    assert why(_job("PENDING", reason="DependencyNeverSatisfied"), Notices()).never
    assert not why(_job("PENDING", reason="Resources"), Notices()).never


# --- Times ---


def test_a_waiting_jobs_times_are_expectations() -> None:
    job = _job("PENDING", start_at=100.0, end_at=200.0)
    assert (job.started_at, job.ended_at, job.expected_start_at) == (None, None, 100.0)


def test_a_job_that_ended_without_a_node_never_started() -> None:
    job = _job("CANCELLED", start_at=100.0, end_at=100.0)
    assert (job.started_at, job.ended_at, job.expected_start_at) == (None, 100.0, None)


# --- Lists, amounts, versions ---


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ()),
        ("node4", ("node4",)),
        ("node[1-3,7]", ("node1", "node2", "node3", "node7")),
        ("a[08-10],b", ("a08", "a09", "a10", "b")),
        ("r[1-2]n[1-2]x", ("r1n1x", "r1n2x", "r2n1x", "r2n2x")),
    ],
)
def test_a_folded_list_is_unfolded(text: str, names: tuple[str, ...]) -> None:
    assert unfolded(text) == names


@pytest.mark.parametrize(
    "text", ["n[0-999999999]", "a[1-400]b[1-400]", "n[3-1]", "n[", "a,,b", "n[1-2", "n[x]", "a b"]
)
def test_a_list_that_is_none_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        unfolded(text)


def test_the_waiting_tasks_of_an_array_are_numbers() -> None:
    assert numbers("2-4,9%2") == (2, 3, 4, 9)
    assert numbers("0-8:4") == (0, 4, 8)
    with pytest.raises(BadInput):
        numbers("0-999999999")


def test_amounts_are_in_bytes_and_gpus_by_type() -> None:
    tres = read_tres("cpu=2,mem=1.50G,node=1,billing=2,gres/gpu:a100=1,gres/gpu:a40=4")
    assert tres is not None
    assert (tres.cpus, tres.memory_bytes, tres.gpus) == (2, 1536 << 20, 5)
    assert tres.gpu_types == (("a100", 1), ("a40", 4))
    assert read_tres("") is None


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gpu:a40:2(IDX:1-2)", (Gpus("a40", 2, (1, 2)),)),
        ("gpu:a40:3(IDX:0,2-3),gpu:1(IDX:5)", (Gpus("a40", 3, (0, 2, 3)), Gpus("", 1, (5,)))),
        ("gpu:a40:0(IDX:N/A)", (Gpus("a40", 0, ()),)),
        ("gpu:4(S:0-1)", (Gpus("", 4, None),)),
        ("nic:2,fpga:1", ()),
        ("", ()),
    ],
)
def test_gpus_have_a_type_a_count_and_their_true_numbers(text: str, gpus: tuple[Gpus, ...]) -> None:
    assert read_gres(text) == gpus


def test_versions_are_ordered_and_read_from_either_form() -> None:
    assert parse_version("slurm-wlm 22.05.8\n") == Version(22, 5, 8)
    assert parse_version("24.11.5-1") < parse_version("slurm 26.05.0")
    with pytest.raises(BadAnswer):
        parse_version("bash: sinfo: not found")


def test_a_newer_slurm_is_read_as_the_newest_and_said_once() -> None:
    answer = json.loads(RUNNING.read_bytes())
    answer["meta"]["slurm"]["release"] = "31.05.0"
    notices = Notices()
    for _ in range(2):
        (job,) = jobs.read_jobs(json.dumps(answer).encode(), notices)
    assert job.states == ("RUNNING",)
    assert [told for told in notices.take() if "newer" in told] == [
        "Slurm 31.05.0 is newer than 26.05.0, the newest that Muster was tried with; read as that"
    ]


# --- Answers ---


def test_an_unknown_key_is_told_once_and_passed_over() -> None:
    notices = Notices()
    for _ in range(2):
        (job,) = jobs.read_jobs(_changed(quantum_flux=7), notices)
    assert job.id == 2
    (told,) = notices.take()
    assert "'quantum_flux'" in told


def test_infinite_is_looked_at_before_set() -> None:
    (job,) = jobs.read_jobs(_changed(time_limit={"set": False, "infinite": True, "number": 0}), Notices())
    assert job.time_limit_seconds == math.inf
    (job,) = jobs.read_jobs(_changed(time_limit={"set": False, "infinite": False, "number": 0}), Notices())
    assert job.time_limit_seconds is None


def test_a_name_that_is_no_unicode_hides_no_other_job() -> None:
    answer = _changed(name="NAME").replace(b"NAME", b"caf\xe9 \xff")
    (job,) = jobs.read_jobs(answer, Notices())
    assert job.name == "caf� �"
    assert job.user == "alice"


def test_gpus_of_a_list_that_does_not_match_the_nodes_are_unknown() -> None:
    (job,) = jobs.read_jobs(_changed(gres_detail=["gpu:a40:2(IDX:1-2)"]), Notices())
    assert [seat.gpus for seat in job.seats] == [None, None]


def test_a_hostile_list_of_nodes_is_unknown_and_told() -> None:
    notices = Notices()
    (job,) = jobs.read_jobs(_changed(nodes="n[0-999999999]"), notices)
    assert job.seats == ()
    assert notices.take()


def test_a_column_that_users_can_write_is_never_asked_for_in_text() -> None:
    assert not {"JobName", "Comment", "WorkDir", "SubmitLine", "WCKey", "Extra"} & set(COLUMNS)


@pytest.mark.parametrize(
    ("said", "id_"), [("12\n", 12), ("12;cluster\n", 12), ("Submitted batch job 513\n", 513)]
)
def test_sbatch_says_the_jobs_id(said: str, id_: int) -> None:
    assert texts.read_submitted(said) == id_


@pytest.mark.parametrize("said", ["", "0\n", "Submitted batch job \n", "12 13\n", "-4\n"])
def test_sbatch_that_names_no_job_is_not_believed(said: str) -> None:
    with pytest.raises(BadAnswer):
        texts.read_submitted(said)


def test_the_flag_is_shown_before_the_state() -> None:
    assert states.word(("COMPLETED", "COMPLETING")) == "COMPLETING"
    assert states.word(("RUNNING",)) == "RUNNING"
    assert {*SENTENCES} >= reasons.HOLDS


def test_a_raw_wait_status_is_code_and_signal() -> None:
    answer = json.loads((CARRIED / "22.05.8" / "batchA-running.squeue.json").read_bytes())
    for status, exit_ in ((3 << 8, Exit(3, 0)), (9, Exit(0, 9)), (0x80 | 11, Exit(0, 11)), (0, Exit())):
        answer["jobs"][0]["exit_code"] = status
        assert jobs.read_jobs(json.dumps(answer).encode(), Notices())[0].exit == exit_
