"""The whole server against a small model of what should be true, whatever is done in whatever order.

One real server, killed now and then, runs real jobs. After each step everything is looked at: what was seen
before and what is seen now must fit together, and with what was asked for and acknowledged.
"""

import time
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from muster.client import Client, Refused
from muster.model.events import Retried, Vacated
from muster.model.state import TRANSITIONS, State
from servers import Server, View, until

HOLDING = {State.STARTING, State.RUNNING, State.SUSPENDED, State.STOPPING}
MOST_RESTARTS = 1  # of each example: they take their time
MOMENT_SECONDS = 0.05

holds = st.sampled_from([False, False, False, True])
picks = st.integers(0, 1000)


def reachable(*, requeued: bool) -> dict[State, set[State]]:
    """What may be seen after what, if only some of what happens is seen."""
    steps: dict[State, set[State]] = {state: {state} for state in State}
    for (state, event), then in TRANSITIONS.items():
        if requeued or event not in (Vacated, Retried):
            steps[state].add(then)
    for _ in State:
        steps = {state: set().union(*(steps[then] for then in thens)) for state, thens in steps.items()}
    return steps


ONWARD, ONWARD_AFTER_REQUEUE = reachable(requeued=False), reachable(requeued=True)


class Job(msgspec.Struct):
    """What is known of a job, and what was promised about it."""

    id: str
    code: int | None  # that it exits with by itself; None: it sleeps until it is told to go
    state: State = State.QUEUED
    attempt: int = 0
    end: tuple[Any, ...] | None = None
    kept: State | None = None  # in which it stays until something else is asked for
    stopped: bool = False
    requeues: int = 0

    def see(self, view: View) -> None:
        state = State(view["state"])
        onward = ONWARD_AFTER_REQUEUE if self.requeues else ONWARD
        assert state in onward[self.state], f"{self.state} → {state} of {self}"
        assert self.kept in (None, state), f"{state} of {self}"
        assert self.attempt <= view["attempt"] <= 1 + self.requeues, f"{view['attempt']} of {self}"
        self.state, self.attempt = state, view["attempt"]
        if state is State.ENDED:
            self._see_end((view["outcome"], view["exit_code"], view["ended_at"]))

    def _see_end(self, end: tuple[Any, ...]) -> None:
        assert self.end in (None, end), f"ended again, as {end}: {self}"
        self.end = end
        by_itself = (("SUCCEEDED" if self.code == 0 else "FAILED"), self.code)
        if self.stopped and end[0] == "STOPPED":
            return
        assert self.code is not None, f"ended although it sleeps: {self}"
        assert end[:2] == by_itself, f"{self}"


class Machine(RuleBasedStateMachine):
    server: Server
    client: Client
    cpus: float
    last_id = 0  # of all examples: the server is the same

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[Job] = []
        self.restarts = 0

    # --- Submitting -----------------------------------------------------------------------------------

    @rule(code=st.sampled_from([0, 3]), hold=holds)
    def submit_quick(self, code: int, hold: bool) -> None:
        self._submit(f"exit {code}", code, hold, cpus=0.1)

    @rule(share=st.sampled_from([0.25, 0.5, 1.0]), hold=holds)
    def submit_sleeper(self, share: float, hold: bool) -> None:
        """One that takes a part of the machine, or all of it."""
        self._submit("exec sleep 1000", None, hold, cpus=share * self.cpus)

    @rule(sleeps=st.booleans(), hold=holds)
    def submit_array(self, sleeps: bool, hold: bool) -> None:
        script, code = ("exec sleep 1000", None) if sleeps else ("exit 5", 5)
        self._submit(script, code, hold, cpus=0.25, array="1-3%2")

    def _submit(self, script: str, code: int | None, hold: bool, **options: Any) -> None:
        view = self.client.submit(["sh", "-c", script], hold=hold, **options)
        assert int(view["id"]) > Machine.last_id
        Machine.last_id = int(view["id"])
        ids = [f"{view['id']}_{i}" for i in (1, 2, 3)] if "array" in options else [view["id"]]
        state, kept = (State.HELD, State.HELD) if hold else (State.QUEUED, None)
        self.jobs += [Job(job, code, state, kept=kept) for job in ids]

    # --- Acting ---------------------------------------------------------------------------------------

    @precondition(lambda self: self.jobs)
    @rule(which=picks)
    def hold(self, which: int) -> None:
        job = self._one(which)
        if self._acts(job, "hold"):
            assert job.kept is None
            job.kept = State.HELD

    @precondition(lambda self: self.jobs)
    @rule(which=picks)
    def release(self, which: int) -> None:
        job = self._one(which, State.HELD)
        was, job.kept = job.kept, None if job.kept is State.HELD else job.kept
        assert self._acts(job, "release") == (was is State.HELD)

    @precondition(lambda self: self.jobs)
    @rule(which=picks)
    def suspend(self, which: int) -> None:
        """Of those that sleep: the others may be over before they can be made to stand still."""
        job = self._one(which)
        if job.code is None:
            running = job.state is State.RUNNING
            if self._acts(job, "suspend"):
                job.kept = State.SUSPENDED
            else:
                assert not running, job

    @precondition(lambda self: self.jobs)
    @rule(which=picks)
    def resume(self, which: int) -> None:
        job = self._one(which, State.SUSPENDED)
        was, job.kept = job.kept, None if job.kept is State.SUSPENDED else job.kept
        assert self._acts(job, "resume") == (was is State.SUSPENDED)

    @precondition(lambda self: self.jobs)
    @rule(which=picks)
    def requeue(self, which: int) -> None:
        job = self._one(which)
        was, job.kept = job.kept, None if job.kept is State.SUSPENDED else job.kept
        job.requeues += 1
        if not self._acts(job, "requeue"):
            job.requeues -= 1
            assert was is not State.SUSPENDED, job

    @precondition(lambda self: self.jobs)
    @rule(which=picks)
    def stop(self, which: int) -> None:
        """It always can be, unless it has ended; and then it ends soon."""
        job = self._one(which)
        was_over, job.kept, job.stopped = job.state is State.ENDED, None, True
        if self._acts(job, "stop"):
            assert not was_over
            until(lambda: self.client.job(job.id)["state"] == State.ENDED, f"the end of {job}")
        else:
            assert was_over or job.code is not None, job

    @precondition(lambda self: self.jobs and self.restarts < MOST_RESTARTS)
    @rule()
    def kill_and_start_again(self) -> None:
        self.restarts += 1
        self.server.kill()
        self.server.start()

    @precondition(lambda self: self.jobs)
    @rule()
    def let_a_moment_pass(self) -> None:
        time.sleep(MOMENT_SECONDS)

    def _one(self, which: int, kept: State | None = None) -> Job:
        """Any, but rather one for which there is something to do.

        Which those are depends on how quick the machine is; what is drawn must not, so it is a number.
        """
        live = [job for job in self.jobs if job.state is not State.ENDED]
        fitting = [job for job in live if kept is not None and job.kept is kept]
        among = fitting or live or self.jobs
        return among[which % len(among)]

    def _acts(self, job: Job, verb: str) -> bool:
        """Whether it was done; the only other thing that may be said is that it can't be, now."""
        try:
            view = self.client.act(job.id, verb)
        except Refused as refusal:
            if refusal.status != 409:
                raise
            return False
        if verb in ("hold", "suspend"):
            assert view["state"] == {"hold": State.HELD, "suspend": State.SUSPENDED}[verb]
        return True

    # --- Looking --------------------------------------------------------------------------------------

    @invariant()
    def all_fits_together(self) -> None:
        views = self.client.jobs(all=True, members=True, limit=0)
        by_id = {view["id"]: view for view in views}
        assert len(by_id) == len(views)
        for job in self.jobs:
            job.see(by_id[job.id])
        assert sum(view["cpus"] for view in views if view["state"] in HOLDING) <= self.cpus + 1e-9

    def teardown(self) -> None:
        """What sleeps is stopped, what is held or stands still goes on; then all that is left ends."""
        for job in self.jobs:
            if job.code is None and job.state is not State.ENDED:
                job.kept, job.stopped = None, True
                self._acts(job, "stop")
        for job in self.jobs:
            if job.code is not None and job.kept is not None:
                verb = "release" if job.kept is State.HELD else "resume"
                job.kept = None
                assert self._acts(job, verb), job
        until(lambda: not self.client.jobs(), lambda: f"all jobs to end: {self.client.jobs()}")
        self.all_fits_together()
        assert all(job.end is not None for job in self.jobs)


def test_the_server_does_what_the_model_says() -> None:
    with Server() as server, server.client() as client:
        Machine.server, Machine.client = server, client
        Machine.cpus = sum(node["cpus"] for node in client.nodes())
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=8,
                stateful_step_count=30,
                derandomize=True,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
        server.terminate()
        assert (server.attempts_kept(), server.processes()) == (set(), [])
