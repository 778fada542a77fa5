"""The conformance suite: any engine that passes it can be put under the loop.

Whoever writes an engine writes a ``Bench`` for it and runs ``check_engine``, or each of ``CHECKS``
as a test of its own. A check is a sentence, and a trial that shows whether it is true by
submitting, acting and observing. What an engine claims is tried; the rest is skipped, by name.
"""

import time
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from typing import NamedTuple

from muster.engines.bench import Bench, LosesNodes, ProtocolBroken, Watch, expect, seats
from muster.model.events import Exited, Outcome, Started, Vacated
from muster.model.job import Checkpoint, Shape
from muster.model.plan import Evict, Start, Stop

__all__ = ["CHECKS", "Bench", "Check", "LosesNodes", "ProtocolBroken", "check_engine"]

_HALF_A_GPU = Shape(cpus_milli=100, gpus=1, gpu_milli=500)

Trial = Callable[[Watch], None]

_NEEDS: dict[str, Callable[[Bench], bool]] = {
    "evicts": lambda bench: bench.engine.capabilities.evicts,
    "gangs": lambda bench: bench.engine.capabilities.gangs,
    "shares_gpus": lambda bench: bench.engine.capabilities.shares_gpus,
    "a GPU": lambda bench: any(node.devices for node in bench.engine.nodes()),
    "a bench that loses nodes": lambda bench: isinstance(bench, LosesNodes),
    "lines_up": lambda bench: bench.engine.capabilities.lines_up,
    "virtual_time": lambda bench: bench.engine.capabilities.virtual_time,
    "real time": lambda bench: not bench.engine.capabilities.virtual_time,
}


class Check(NamedTuple):
    """A sentence that is true of every engine, and the trial of it."""

    name: str
    trial: Trial
    needs: tuple[str, ...]

    def why_not(self, bench: Bench) -> str | None:
        """Why the check does not apply, if it does not."""
        missing = [need for need in self.needs if not _NEEDS[need](bench)]
        return f"it needs {' and '.join(missing)}" if missing else None

    def __call__(self, bench: Bench) -> None:
        """Try it on a fresh bench."""
        try:
            self.trial(Watch(bench))
        except ProtocolBroken as seen:
            raise ProtocolBroken(f"{self.name}: {seen}") from None
        except Exception as error:
            raise ProtocolBroken(f"{self.name}: {error!r} was raised") from error


def check_engine(make: Callable[[], Bench]) -> dict[str, str]:
    """Try every check on a fresh bench. The first that fails is raised, as ``ProtocolBroken``.

    Returns the names of those that don't apply, with the reason.
    """
    skipped: dict[str, str] = {}
    for check in CHECKS:
        with closing(make()) as bench:
            if (why_not := check.why_not(bench)) is not None:
                skipped[check.name] = why_not
            else:
                check(bench)
    return skipped


_entered: list[Check] = []


def _check(*needs: str) -> Callable[[Trial], Trial]:
    """Enter a trial among the checks. Its name is the sentence."""

    def enter(trial: Trial) -> Trial:
        _entered.append(Check(trial.__name__.replace("_", " "), trial, needs))
        return trial

    return enter


# --- Time and inventory ---------------------------------------------------------------------------


@_check()
def the_inventory_names_each_node_once_and_is_stable(watch: Watch) -> None:
    names = [node.name for node in watch.engine.nodes()]
    expect(bool(names), "there are no nodes")
    expect(len(set(names)) == len(names), f"a node is named twice: {names}")
    job = watch.job("a", 1)
    watch.start(job)
    watch.exited(job)
    again = [node.name for node in watch.engine.nodes()]
    expect(again == names, f"the nodes were {names}, and after a job they are {again}")


@_check()
def time_never_goes_back(watch: Watch) -> None:
    job = watch.job("a", 2)
    watch.start(job)
    watch.exited(job)
    watch.wait(1)


@_check("virtual_time")
def virtual_time_passes_only_when_observed(watch: Watch) -> None:
    before = watch.now()
    job = watch.job("a", 1e6)
    watch.start(job)
    time.sleep(0.001)
    expect(watch.now() == before, f"it was {before:g} s, and unobserved it is {watch.now():g} s")
    for _ in range(3):  # it starts, it exits, and nothing is left to wait for
        watch.look()
    watch.expect_story(job, Started, Exited)


@_check("real time")
def real_time_passes_by_itself(watch: Watch) -> None:
    before = watch.now()
    time.sleep(watch.beat)
    expect(watch.now() > before, f"it is still {before:g} s")


@_check()
def observe_returns_by_its_bound(watch: Watch) -> None:
    job = watch.job("a")
    watch.wait(1)
    watch.begin(job)
    watch.wait(2)
    watch.look(watch.now() - watch.beat)
    watch.expect_story(job, Started)


# --- A job's life ---------------------------------------------------------------------------------


@_check()
def a_job_starts_once_and_exits_once_when_it_is_done(watch: Watch) -> None:
    job = watch.job("a", 4)
    watch.start(job)
    exited = watch.exited(job)
    expect(exited.exit_code == 0, f"the exit code was to be 0: {exited}")
    lasted = exited.at - watch.started(job).at
    expect(lasted >= 2 * watch.beat, f"a job of {4 * watch.beat:g} s exited after {lasted:g} s")
    watch.expect_story(job, Started, Exited)


@_check()
def a_job_that_fails_tells_its_exit_code(watch: Watch) -> None:
    job = watch.job("a", 1, exit_code=3)
    watch.start(job)
    exited = watch.exited(job, outcome=Outcome.FAILED)
    expect(exited.exit_code == 3, f"the exit code was to be 3: {exited}")


@_check()
def facts_come_in_time_order_and_speak_of_attempts_that_were_started(watch: Watch) -> None:
    jobs = [watch.job(f"{beats}", beats) for beats in (6, 2, 4)]
    idle = watch.job("idle")
    for job in jobs:
        watch.start(job)
    for job in jobs:
        watch.exited(job)
    order = [f.job for f in watch.facts if isinstance(f, Exited)]
    expect(order == ["2", "4", "6"], f"the shortest was to exit first, but they did so: {order}")
    watch.expect_story(idle)


@_check()
def jobs_at_once_are_not_mixed_up(watch: Watch) -> None:
    good, bad, stopped = watch.job("a", 3), watch.job("b", 3, exit_code=5), watch.job("c")
    for job in (good, bad, stopped):
        watch.start(job)
    watch.started(stopped)
    watch.stop(stopped)
    watch.exited(stopped, outcome=Outcome.STOPPED)
    watch.exited(good)
    expect(watch.exited(bad, outcome=Outcome.FAILED).exit_code == 5, f"{watch.facts}")
    for job in (good, bad, stopped):
        watch.expect_story(job, Started, Exited)


@_check("gangs")
def a_gang_starts_and_ends_as_one(watch: Watch) -> None:
    done, stopped = watch.job("a", 2, parts=3), watch.job("b", parts=3)
    watch.start(done)
    watch.begin(stopped)
    watch.stop(stopped)
    watch.exited(done)
    watch.exited(stopped, outcome=Outcome.STOPPED)
    watch.expect_story(done, Started, Exited)
    watch.expect_story(stopped, Started, Exited)


@_check("shares_gpus", "a GPU")
def jobs_share_a_gpu_at_once(watch: Watch) -> None:
    node = next(n for n in watch.up() if n.devices)
    halves = [watch.job(name, 4, shape=_HALF_A_GPU) for name in ("a", "b")]
    for job in halves:
        watch.start(job, on=[node])
    starts, ends = [watch.started(j).at for j in halves], [watch.exited(j).at for j in halves]
    expect(max(starts) < min(ends), f"one waited for the other: {watch.facts}")


# --- Starting -------------------------------------------------------------------------------------


@_check()
def starting_twice_runs_once(watch: Watch) -> None:
    job = watch.job("a", 3)
    watch.start(job)
    watch.begin(job)
    watch.start(job)
    watch.exited(job)
    watch.expect_story(job, Started, Exited)


@_check()
def a_second_attempt_does_not_start_while_the_first_runs(watch: Watch) -> None:
    job = watch.job("a", 3)
    watch.begin(job)
    watch.start(job, attempt=2)
    watch.exited(job)
    watch.expect_story(job, Started, Exited)


@_check()
def a_job_that_has_exited_stays_so_whatever_it_is_told(watch: Watch) -> None:
    job = watch.job("a", 1)
    watch.start(job)
    watch.exited(job)
    watch.start(job)
    watch.stop(job)
    watch.start(job, attempt=2)
    watch.expect_story(job, Started, Exited)


@_check()
def an_unknown_job_is_refused_and_changes_nothing(watch: Watch) -> None:
    job, nodes = watch.job("a", 1), watch.engine.nodes()
    start = Start("nobody", 1, seats(job, nodes))
    for action in (start, Evict("nobody", 1, "check"), Stop("nobody", 1, "check")):
        expect(watch.refuses(action), f"this was not refused with a MusterError: {action}")
    expect(watch.engine.nodes() == nodes, f"the nodes have changed: {watch.engine.nodes()}")
    watch.start(job)
    watch.exited(job)
    watch.expect_story(job, Started, Exited)


# --- Stopping -------------------------------------------------------------------------------------


@_check()
def stopping_twice_exits_once(watch: Watch) -> None:
    job = watch.job("a")
    watch.begin(job)
    watch.stop(job)
    watch.stop(job)
    watch.exited(job, outcome=Outcome.STOPPED)
    watch.stop(job)
    watch.expect_story(job, Started, Exited)


@_check()
def a_stubborn_job_is_stopped_all_the_same(watch: Watch) -> None:
    job = watch.job("a", stubborn=True)
    watch.begin(job)
    watch.stop(job)
    watch.exited(job, outcome=Outcome.STOPPED)


@_check("evicts")
def a_stop_overrules_an_eviction(watch: Watch) -> None:
    # It saves for a while, and is in no hurry to leave: so the stop finds it leaving.
    job = watch.job("a", checkpoint=Checkpoint(save_seconds=2 * watch.beat), stubborn=True)
    watch.begin(job)
    watch.evict(job)
    watch.stop(job)
    watch.exited(job, outcome=Outcome.STOPPED)
    watch.expect_story(job, Started, Exited)


@_check("evicts")
def an_eviction_does_not_overrule_a_stop(watch: Watch) -> None:
    job = watch.job("a")
    watch.begin(job)
    watch.stop(job)
    watch.evict(job)
    watch.exited(job, outcome=Outcome.STOPPED)
    watch.expect_story(job, Started, Exited)


# --- Evicting -------------------------------------------------------------------------------------


@_check("evicts")
def an_evicted_job_leaves_and_is_done_in_its_next_attempt(watch: Watch) -> None:
    job = watch.job("a", 4)
    watch.begin(job)
    watch.evict(job)
    left = watch.vacated(job)
    expect(left.because == "check", f"the cause was to be 'check', as it was told: {left}")
    watch.start(job, attempt=2)
    watch.exited(job, attempt=2)
    watch.expect_story(job, Started, Vacated, Started, Exited)


@_check("evicts")
def evicting_twice_vacates_once(watch: Watch) -> None:
    job = watch.job("a")
    watch.begin(job)
    watch.evict(job)
    watch.evict(job)
    watch.vacated(job)
    watch.evict(job)
    watch.expect_story(job, Started, Vacated)


@_check("evicts")
def an_action_for_an_attempt_that_is_over_does_nothing(watch: Watch) -> None:
    job = watch.job("a", 8)
    watch.begin(job)
    watch.evict(job)
    watch.vacated(job)
    watch.start(job)
    watch.stop(job)
    watch.expect_story(job, Started, Vacated)
    watch.begin(job, attempt=2)
    for act in (watch.start, watch.evict, watch.stop):
        act(job, 1)
    watch.exited(job, attempt=2)
    watch.expect_story(job, Started, Vacated, Started, Exited)


@_check("evicts")
def a_stubborn_job_is_evicted_all_the_same(watch: Watch) -> None:
    job = watch.job("a", stubborn=True)
    watch.begin(job)
    watch.evict(job)
    watch.vacated(job)


@_check("evicts")
def work_that_was_saved_is_not_lost(watch: Watch) -> None:
    lost, took = _evicted_half_way(watch, Checkpoint())
    expect(lost <= 4, f"it saved its work of 8 beats when it was told, and lost {lost:g}")
    expect(took <= 12, f"with half of 16 beats done before, the rest took {took:g}")


@_check("evicts")
def work_that_was_not_saved_is_lost(watch: Watch) -> None:
    lost, took = _evicted_half_way(watch, None)
    expect(lost >= 6, f"it saved none of its 8 beats of work, and lost only {lost:g}")
    expect(took >= 14, f"all of its 16 beats had to be done again, and that took {took:g}")


def _evicted_half_way(watch: Watch, checkpoint: Checkpoint | None) -> tuple[float, float]:
    """Beats lost by a job of 16 that is evicted after 8, and how many its second attempt took."""
    job = watch.job("a", 16, checkpoint=checkpoint)
    watch.begin(job)
    watch.wait(8)
    watch.evict(job)
    lost_seconds = watch.vacated(job).lost_seconds
    watch.start(job, attempt=2)
    took_seconds = watch.exited(job, attempt=2).at - watch.started(job, attempt=2).at
    return lost_seconds / watch.beat, took_seconds / watch.beat


# --- Losing nodes ---------------------------------------------------------------------------------


@_check("a bench that loses nodes")
def a_lost_node_vacates_its_jobs_and_comes_back(watch: Watch) -> None:
    lost, *others = watch.up()
    job, elsewhere = watch.job("a"), watch.job("b")
    watch.start(job, on=[lost])
    if others:
        watch.start(elsewhere, on=others[:1])
    watch.started(job)
    watch.lose(lost)
    watch.vacated(job)
    watch.restore(lost)
    watch.begin(job, attempt=2, on=[lost])
    watch.expect_story(job, Started, Vacated, Started)
    watch.expect_story(elsewhere, *[Started] * bool(others))


@_check("a bench that loses nodes")
def a_job_that_is_started_on_a_lost_node_is_vacated(watch: Watch) -> None:
    job, lost = watch.job("a"), watch.up()[0]
    watch.lose(lost)
    watch.start(job, on=[lost])
    watch.vacated(job)


# --- Lines ----------------------------------------------------------------------------------------


@_check("lines_up")
def who_is_lined_up_starts_when_the_one_before_has_left(watch: Watch) -> None:
    jobs = [watch.job(name, 2) for name in "abc"]
    watch.begin(jobs[0])
    for ahead, job in pairwise(jobs):
        watch.start(job, behind=ahead)
    for ahead, job in pairwise(jobs):
        left, began = watch.exited(ahead).at, watch.started(job).at
        expect(left <= began, f"{job.id} was to start once {ahead.id} had left: {watch.facts}")
    watch.exited(jobs[-1])
    for job in jobs:
        watch.expect_story(job, Started, Exited)


@_check("lines_up")
def who_comes_behind_one_that_has_left_starts_at_once(watch: Watch) -> None:
    first, second = watch.job("a", 1), watch.job("b", 1)
    watch.start(first)
    watch.exited(first)
    watch.start(second, behind=first)
    watch.exited(second)
    watch.expect_story(second, Started, Exited)


@_check("lines_up")
def who_is_recalled_from_a_line_can_be_started_as_if_for_the_first_time(watch: Watch) -> None:
    first, second, third = watch.job("a"), watch.job("b", 1), watch.job("c", 1)
    watch.begin(first)
    watch.start(second, behind=first)
    watch.start(third, behind=second)
    watch.recall(second)
    watch.stood_down(second)
    watch.expect_story(second)
    watch.start(second)
    watch.exited(second)
    watch.expect_story(third)
    watch.stop(first)
    watch.exited(third)


@_check("lines_up")
def a_recall_is_nothing_to_who_has_started(watch: Watch) -> None:
    job = watch.job("a", 3)
    watch.begin(job)
    watch.recall(job)
    watch.exited(job)
    watch.expect_story(job, Started, Exited)


@_check("lines_up")
def who_is_stopped_in_a_line_never_starts_and_the_line_closes_up(watch: Watch) -> None:
    first, second, third = watch.job("a"), watch.job("b", 1), watch.job("c", 1)
    watch.begin(first)
    watch.start(second, behind=first)
    watch.start(third, behind=second)
    watch.stop(second)
    watch.exited(second, outcome=Outcome.STOPPED)
    watch.expect_story(second, Exited)
    watch.expect_story(third)
    watch.stop(first)
    watch.exited(third)


CHECKS: tuple[Check, ...] = tuple(_entered)
