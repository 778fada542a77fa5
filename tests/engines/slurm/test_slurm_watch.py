"""Looking again and again: how often, what a failure does, and what is ordered meanwhile."""

import logging
from collections.abc import Sequence

import pytest
from slurm_world import again

from muster.application.adopting import charter_in
from muster.engines.base import Known
from muster.engines.slurm.adopted import own_id
from muster.engines.slurm.adopting import Adopting
from muster.engines.slurm.answers import SlurmAttempt, SlurmJob, SlurmNode
from muster.engines.slurm.commands import Commands
from muster.engines.slurm.errors import ControllerDown, Denied
from muster.engines.slurm.moves import Reading
from muster.engines.slurm.pace import Pace
from muster.model.charter import Charter
from muster.model.events import Amended, Submitted, Withdrawn
from muster.model.job import Gang, Job, Part, Shape
from muster.model.state import State

WAITS = SlurmJob(
    12, ("PENDING",), user="ada", account="vision", reason="Priority", priority=1.0, submitted_at=5.0
)
NODES = (SlurmNode("n1", ("IDLE",), cpus=8, memory_bytes=1 << 30, gpus=()),)
SCRIPT = """#!/bin/sh
#SBATCH --gres=gpu:4
#MUSTER --for "Does 8B beat 3B on held-out data?" --success "val_acc >= 0.9"
srun train
"""


class Answering(Commands):
    """Slurm, as far as its commands are told here: scripts, rights, accounting, cancelling."""

    def __init__(
        self, *, operator: bool | None = True, scripts: dict[str, str] | None = None, read_only: bool = False
    ) -> None:
        super().__init__(read_only=read_only)
        self.scripts = scripts or {}
        self.asked: list[str] = []
        self.cancelled: list[list[str]] = []
        self.fails: Exception | None = None
        self._operator = operator

    def is_operator(self) -> bool | None:
        return self._operator

    def drain(self, node: str, because: str) -> None:
        self.asked.append(f"drain {node}: {because}")

    def topology(self) -> str:
        return ""

    def script(self, job: int | str) -> str | None:
        self.asked.append(str(job))
        return self.scripts.get(str(job))

    def attempts(self, since: float) -> tuple[SlurmAttempt, ...]:
        return ()

    def cancel(self, ids: Sequence[int | str], *, signal: str | None = None) -> None:  # type: ignore[override]
        if self.fails is not None:
            raise self.fails
        if ids:
            self.cancelled.append([str(one) for one in ids])


def adopting(slurm: Commands) -> Adopting:
    return Adopting(slurm, Reading(charter_in=charter_in), 0.0)


def pass_over(one: Adopting, *jobs: SlurmJob, at: float = 10.0) -> list[object]:
    events = [*one.look_at_nodes(NODES, at), *one.look(jobs, (), at, 0.0)]
    return [*events, *one.after(events, at, at)]


# --- How often -------------------------------------------------------------------------------------


def test_a_pass_that_takes_long_makes_the_next_one_later() -> None:
    pace = Pace(5.0)
    for took, pause in ((0.1, 5.0), (3.0, 27.0), (60.0, 120.0)):
        pace.worked(took)
        assert pace.pause(busy=False, calm=False) == pause


def test_while_something_is_about_to_happen_it_is_looked_at_more_often() -> None:
    pace = Pace(5.0)
    pace.worked(0.01)
    assert pace.pause(busy=True, calm=True) < pace.pause(busy=False, calm=True) < 5.0
    pace.worked(1.0)
    assert pace.pause(busy=True, calm=True) == 9.0


def test_a_pass_that_fails_is_said_once_and_slows_down_until_it_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pace = Pace(5.0)
    pauses = []
    with caplog.at_level(logging.WARNING):
        for _ in range(4):
            pace.failed("it is down")
            pauses.append(pace.pause(busy=True, calm=True))
        assert pace.trouble == "it is down"
        pace.worked(0.0)
    assert pauses == [5.0, 10.0, 20.0, 20.0]
    assert [record.message for record in caplog.records] == ["it is down", "Slurm answers again"]
    assert (pace.trouble, pace.pause(busy=False, calm=False)) == (None, 5.0)


# --- What scripts say ------------------------------------------------------------------------------


def test_what_a_script_says_to_muster_is_the_jobs_charter_and_is_read_once() -> None:
    slurm = Answering(scripts={"12": SCRIPT})
    one = adopting(slurm)
    (amended,) = [e for e in pass_over(one, WAITS) if isinstance(e, Amended)]
    assert amended.charter == Charter(
        purpose="Does 8B beat 3B on held-out data?", success=("val_acc >= 0.9",)
    )
    assert (amended.job, amended.by) == ("s12", "ada")
    pass_over(one, WAITS)
    assert slurm.asked == ["12"]


def test_scripts_of_others_are_asked_for_by_operators_only() -> None:
    slurm = Answering(operator=False, scripts={"12": SCRIPT})
    pass_over(adopting(slurm), WAITS)
    assert slurm.asked == []


def test_a_few_scripts_are_read_in_a_look_and_the_rest_in_the_next() -> None:
    slurm = Answering()
    one = adopting(slurm)
    jobs = [again(WAITS, id=number) for number in range(1, 26)]
    for asked in (10, 20, 25, 25):
        pass_over(one, *jobs)
        assert len(slurm.asked) == asked


def test_an_arrays_script_is_read_once_for_all_of_its_tasks() -> None:
    slurm = Answering(scripts={"20": SCRIPT})
    found = pass_over(adopting(slurm), again(WAITS, id=20, array_id=20, array_tasks="1-9"))
    assert [e.job for e in found if isinstance(e, Amended)] == ["s20"]


def test_a_script_that_can_not_be_understood_changes_nothing_and_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    slurm = Answering(scripts={"12": "#!/bin/sh\n#MUSTER --purpose x\n"})
    with caplog.at_level(logging.WARNING):
        found = pass_over(adopting(slurm), WAITS)
    assert not [e for e in found if isinstance(e, Amended)]
    assert "the script of s12, line 2: unknown option --purpose" in caplog.text


# --- What is to be stopped -------------------------------------------------------------------------


def test_what_is_to_be_stopped_is_cancelled_until_it_is_gone() -> None:
    slurm = Answering()
    one = adopting(slurm)
    pass_over(one, WAITS)
    one.stop("s12", "stopped by ben: not needed")
    slurm.fails = ControllerDown("away")
    with pytest.raises(ControllerDown):
        pass_over(one, WAITS)
    slurm.fails = None
    pass_over(one, WAITS)
    assert slurm.cancelled == [["12"]]
    (event,) = pass_over(one, again(WAITS, states=("CANCELLED",), end_at=9.0))
    assert isinstance(event, Withdrawn)
    assert event.because == "stopped by ben: not needed"
    assert slurm.cancelled == [["12"]]


def test_while_slurm_has_not_said_what_we_may_it_decides_itself_and_nobody_is_called_no_operator() -> None:
    slurm = Answering(operator=None)
    one = adopting(slurm)
    pass_over(one, WAITS)
    said = one.out_of_reach(_job("s12", "ada"))
    assert said is not None
    assert "has not said yet whether this Muster may stop it: try again in a moment" in said
    one.drain("n1", "fan")
    assert slurm.asked == ["drain n1: fan"]


def test_who_is_no_operator_reaches_their_own_jobs_and_no_others() -> None:
    one = adopting(Answering(operator=False))
    pass_over(one, WAITS)
    assert one.out_of_reach(_job("s12", one._me)) is None
    said = one.out_of_reach(_job("s12", "ada"))
    assert said is not None
    assert "who is no operator there: ask ada or an operator for `scancel 12`" in said
    with pytest.raises(Denied, match="no operator of Slurm, so it can't drain nodes"):
        one.drain("n1", "fan")


def test_who_only_observes_changes_nothing() -> None:
    slurm = Answering(read_only=True)
    one = adopting(slurm)
    pass_over(one, WAITS)
    said = one.out_of_reach(_job("s12", one._me))
    assert said == "job s12 is Slurm's, which this Muster only observes: stop it there with `scancel 12`"
    for refused in (
        lambda: one.stop("s12", ""),
        lambda: one.drain("n1", "fan"),
        lambda: one.undrain("n1"),
    ):
        with pytest.raises(Denied, match="only observes"):
            refused()
    pass_over(one, WAITS)
    assert slurm.cancelled == []


def test_what_was_known_before_a_restart_is_not_told_again() -> None:
    one = adopting(Answering())
    (event,) = [e for e in pass_over(one, WAITS) if isinstance(e, Submitted)]
    other = adopting(Answering())
    other.knows([Known(event.job, State.QUEUED, 0, 5.0)], list(one.fleet.nodes.values()), lambda _: ())
    assert pass_over(other, WAITS) == []
    assert other.waits_because("s12") == "others are before it; it starts by itself"


def test_an_id_leads_back_to_slurms_own() -> None:
    assert (own_id("s12"), own_id("s6_3")) == ("12", "6_3")


def _job(one: str, owner: str) -> Job:
    return Job(one, Gang((Part(Shape()),)), 0.0, owner=owner, adopted="slurm")
