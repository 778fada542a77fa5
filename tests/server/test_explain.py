"""Why a job waits, in words, and what would help."""

from collections.abc import Callable

import numpy as np
import pytest

from case import Case
from muster.model.charter import Verdict
from muster.model.errors import BadInput
from muster.model.events import Outcome
from muster.model.job import Priority
from muster.model.node import Health
from muster.model.policy import Policy
from muster.model.state import State
from muster.server.outlook.explain import Explanation, explain, explain_ended


def ticking(step: float = 0.0005) -> Callable[[], float]:
    looks = iter(range(1_000_000_000))
    return lambda: next(looks) * step


def why(case: Case, job_id: str, priorities: tuple[Priority, ...] = ()) -> Explanation:
    case.expect(job_id)
    return explain(
        case.fold.snapshot(),
        case.plan,
        Policy(),
        job_id,
        now=case.now,
        rng=np.random.default_rng(1),
        clock=ticking(),
        show_time=lambda at: f"{(at - case.now) / 60:+.0f}m",
        priorities=priorities,
    )


def changes(found: Explanation) -> list[str]:
    return [better.change for better in found.sooner]


def test_the_answer_reads_like_a_person_would_say_it() -> None:
    case = Case().team("vision", quota=6).node("n1", gpus=4)
    before = case.running(on="n1", gpus=1, lasts="2h", since_seconds="1h", owner="bob", team="vision")
    found = why(case, case.waiting(gpus=4, time_limit="8h", team="vision"))
    lines = found.text.splitlines()
    assert lines[0] == "Waiting: no node has 4 GPUs free together (the most is 3 GPUs, on n1)."
    assert lines[1] == "  quota    ok    1 of 6 GPUs used by vision"
    assert lines[2].startswith("Likely starts +")
    assert lines[2].endswith(f" (80 %), when {before} (bob, until +60m) ends. Latest +60m, by time limits.")
    assert lines[3] == "Sooner:  --gpus 3                → now"
    assert found.state is State.QUEUED
    assert [r.kind for r in found.reasons] == ["NoRoom"]


@pytest.mark.parametrize(
    ("taken", "wish", "change"),
    [
        ({"gpus": 1}, {"gpus": 2}, "--gpus 1"),
        ({"cpus": 50}, {"cpus": 32}, "--cpus 14"),
        ({"memory": "500G"}, {"memory": "100G"}, "--memory 12G"),
        ({"gpus": 1}, {"gpus": 1, "parts": 2}, "--nodes 1"),
    ],
)
def test_as_much_as_is_free_would_start_now(
    taken: dict[str, object], wish: dict[str, object], change: str
) -> None:
    case = Case().node("n1", gpus=2)
    case.running(on="n1", lasts="5h", owner="bob", **taken)
    found = why(case, case.waiting(time_limit="8h", **wish))
    assert changes(found)[0] == change
    assert found.sooner[0].starts_at == case.now


def test_another_model_helps_where_one_is_free() -> None:
    case = Case().node("n1", gpus=1, model="A40").node("n2", gpus=1, model="T4")
    case.running(on="n1", gpus=1, lasts="5h")
    assert changes(why(case, case.waiting(gpus=1, model="A40"))) == ["--gpu-model any"]


def test_a_higher_priority_is_told_only_to_who_may_have_it() -> None:
    case = Case().node("n1", gpus=1)
    case.running(on="n1", gpus=1, lasts="5h", since_seconds="1h", priority="low", owner="bob")
    waiting = case.waiting(gpus=1, priority="low")
    assert changes(why(case, waiting)) == []
    assert changes(why(case, waiting, (Priority.LOW, Priority.NORMAL))) == ["--priority normal"]


def test_a_shorter_limit_lets_it_pass_before_a_promise() -> None:
    case = Case().policy(runtimes="asked", backfill="easy").node("n1", gpus=2)
    case.running(on="n1", gpus=1, lasts="3h", since_seconds="1h", owner="bob")
    case.waiting(gpus=2, time_limit="1h", owner="bob", submitted_ago="1h")
    waiting = case.waiting(gpus=1, time_limit="8h")
    for _ in range(5):
        case.ended(ran="20m", gpus=1, time_limit="8h")
    case.expect(waiting)
    found = explain(
        case.fold.snapshot(),
        case.plan,
        Policy(runtimes="asked", backfill="easy"),
        waiting,
        now=case.now,
        rng=np.random.default_rng(1),
        clock=ticking(),
        show_time=str,
        priorities=(),
    )
    assert changes(found) == ["--time 120m"]


def test_what_does_not_help_is_not_said() -> None:
    case = Case().node("n1", gpus=1)
    case.running(on="n1", gpus=1, lasts="5h", since_seconds="1h", owner="bob")
    found = why(case, case.waiting(gpus=1), (Priority.LOW, Priority.NORMAL, Priority.HIGH))
    assert changes(found) == []
    assert "Sooner" not in found.text


def test_who_can_never_run_is_told_so_and_what_would_do() -> None:
    case = Case().node("n1", gpus=4)
    found = why(case, case.waiting(gpus=9))
    assert found.text.startswith("Can never run: asks 9 GPUs on one node; the most is 4 GPUs, on n1.")
    assert found.estimate is None
    assert found.reasons[0].action == "ask for at most 4 GPUs on one node, or split it: --nodes"


def test_who_waits_for_what_is_drained_is_told_why_and_what_helps() -> None:
    case = Case().node("n1", gpus=1).node("n2", cpus=64)
    waiting = case.waiting(gpus=1)
    case.node_is("n1", Health.DRAINED, "ana: wrong ID on the bus")
    found = why(case, waiting)
    assert found.text.splitlines() == [
        "Waiting: only what is out of service could take it: n1 is drained (ana: wrong ID on the bus).",
        "What helps: bring it back, as an admin: muster node resume n1.",
    ]
    assert found.estimate is None


def test_who_could_do_with_the_gpus_that_are_not_drained_is_told_so() -> None:
    case = Case().node("n1", gpus=8)
    case.gpu_is("n1", 3, healthy=False, because="faults")
    found = why(case, case.waiting(gpus=8, time_limit="1h"))
    assert "GPU 3 of n1 is drained (faults)" in found.text
    assert changes(found) == ["--gpus 7"]


def test_a_full_quota_is_shown() -> None:
    case = Case().node("n1", gpus=4).team("vision", quota=1, borrow=0).team("text", quota=3, lend=0)
    case.running(on="n1", gpus=1, lasts="2h", team="vision")
    found = why(case, case.waiting(gpus=1, team="vision"))
    assert "  quota    full  1 of 1 GPUs used by vision" in found.text.splitlines()


def test_a_held_job_is_told_how_to_be_released() -> None:
    case = Case().node("n1", gpus=1)
    held = case.waiting(gpus=1, held=True)
    found = why(case, held)
    assert found.state is State.HELD
    assert found.text == f"Waiting: held; release it with: muster release {held}."


def test_a_dependent_job_is_told_on_whom() -> None:
    case = Case().node("n1", gpus=1)
    before = case.running(on="n1", gpus=1, lasts="2h", since_seconds="1h")
    found = why(case, case.waiting(gpus=1, after={before: "ok"}))
    assert found.text.startswith(f"Waiting: waits for {before} to end.")
    assert found.reasons[0].action == f"see what that waits for: muster why {before}"
    assert found.sooner == ()


def test_a_running_job_is_told_until_when() -> None:
    case = Case().node("n1", gpus=1)
    found = why(case, case.running(on="n1", gpus=1, lasts="2h", since_seconds="1h"))
    assert found.state is State.RUNNING
    assert found.text == "Running on n1 since -60m; likely until +60m, +60m at the latest."


def test_a_job_that_is_evicted_is_told_that_it_waits_again() -> None:
    case = Case().node("n1", gpus=1)
    low = case.running(on="n1", gpus=1, priority="low", lasts="2h", since_seconds="1h")
    case.leaves_slowly(low).waiting(gpus=1)
    found = why(case, low)
    assert found.text == "Stopping on n1 (priority); it waits again when it has left."


def test_an_ended_job_is_told_how() -> None:
    found = explain_ended("7", Outcome.FAILED, ended_at=0.0, exit_code=3, show_time=lambda _: "12:00")
    assert found.text == "Ended at 12:00: it failed, exit code 3."


def test_what_its_charter_ended_is_told_by_what() -> None:
    said = "acc was 0.93 at step 7, and acc >= 0.92 ends it as won"
    verdict, at = Verdict.WON, {"ended_at": 0.0, "show_time": lambda _: "12:00"}
    found = explain_ended("7", Outcome.STOPPED, signal=15, verdict=verdict, reason=said, **at)
    assert found.text == f"Ended at 12:00, won: {said}."


def test_an_unknown_job_is_refused() -> None:
    case = Case().node("n1", gpus=1)
    case.expect(case.waiting(gpus=1))
    with pytest.raises(BadInput, match="there is no job x9"):
        explain(
            case.fold.snapshot(),
            case.plan,
            Policy(),
            "x9",
            now=case.now,
            rng=np.random.default_rng(1),
            clock=ticking(),
            show_time=str,
        )
