"""What was held, folded, is what the ledger says, whatever happened; and a spent budget keeps work back."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.charter import Charter
from muster.model.events import (
    Amended,
    ArraySubmitted,
    Event,
    Evicting,
    Exited,
    NodeSeen,
    Outcome,
    Placed,
    Promised,
    Resumed,
    Retried,
    Seat,
    Started,
    StoodDown,
    Submitted,
    Suspended,
    TeamSet,
    Vacated,
)
from muster.model.job import Job, Shape, single
from muster.model.ledger import usage_of
from muster.model.node import Device, Node
from muster.model.policy import Policy
from muster.model.resources import NOTHING, Resources
from muster.model.state import State
from muster.model.stewardship import BudgetFreed, BudgetReached, of_effort, of_job, of_team
from muster.model.tenancy import Team
from muster.model.units import DAY, GIB
from muster.monitor.ledger import Ledger
from muster.steward.held import HeldTime, Holding, period_of
from muster.store.fold import Fold
from muster.store.image import fold_from, image_of
from muster.store.spending import TeamHeld

SHAPE = Shape(cpus_milli=1500, memory_bytes=GIB, gpus=1)
SPENT = "the budget is spent"


class Story:
    """Jobs of two teams and an effort that come and go on one node, told to a fold and to a ledger."""

    def __init__(self, seed: int) -> None:
        self.luck, self.now = Random(seed), 1_700_000_000.0
        self.fold, self.ledger = Fold(Policy()), Ledger()
        self.attempts: dict[str, int] = {}
        models = ("A40", "H100", "A40", "H100")
        devices = tuple(Device(model) for model in models)
        self.tell(NodeSeen(self.now, Node("here", 64_000, 64 * GIB, devices=devices)))
        self.tell(TeamSet(self.now, Team("lab")))
        self.tell(TeamSet(self.now, Team("nlp", "lab")))

    def tell(self, event: Event) -> None:
        self.fold.apply(event)
        running = self.fold.records[event.job].running if isinstance(event, Placed) else None
        self.ledger.apply(event, None if running is None else running.job)

    def live(self, steps: int) -> None:
        for number in range(steps):
            self.now += self.luck.choice([0.0, 0.25, self.luck.random() * 100, DAY])
            if self.luck.random() < 0.3:
                team, effort = self.luck.choice(["lab", "nlp", ""]), self.luck.choice([None, "eval"])
                gang = single(cpus_milli=1500, memory_bytes=GIB, gpus=1)
                self.tell(
                    Submitted(self.now, Job(f"{number}", gang, self.now, team=team, effort=effort, retries=3))
                )
            living = [job for job, record in self.fold.records.items() if record.outcome is None]
            if living:
                self.go_on(self.luck.choice(living))

    def go_on(self, job: str) -> None:
        record = self.fold.records[job]
        running = record.running
        if running is None:
            self.place(job)
            return
        now, attempt = self.now, running.attempt
        after: dict[State, list[Event]] = {
            State.STARTING: [Started(now, job, attempt)],
            State.RUNNING: [Suspended(now, job, attempt), Exited(now, job, attempt, Outcome.FAILED)],
            State.SUSPENDED: [Resumed(now, job, attempt), Vacated(now, job, attempt, "turn")],
        }
        can = after[running.state]
        if running.state is State.RUNNING:
            can += [Retried(now, job, attempt, Outcome.FAILED), Vacated(now, job, attempt, "turn")]
        if running.behind is not None and running.state is State.STARTING:
            can = [StoodDown(now, job, attempt), Started(now, job, attempt)]
        self.tell(self.luck.choice(can))

    def place(self, job: str) -> None:
        self.attempts[job] = self.attempts.get(job, 0) + 1
        device = self.luck.randrange(4)
        heads = [other for other in self.fold.running if other not in self.fold._lined_up]
        behind = self.luck.choice(heads) if heads and self.luck.random() < 0.4 else None
        record = self.fold.records[job]
        assert record.waiting is not None
        attempt = record.waiting.attempt + 1
        self.tell(Placed(self.now, job, attempt, (Seat("here", SHAPE, (device,), 250),), behind=behind))

    def ledger_says(self) -> tuple[dict[str, Resources], dict[str, Resources]]:
        """By team with those below it, and by effort; of what has left its seats."""
        teams: dict[str, Resources] = {}
        efforts: dict[str, Resources] = {}
        for entry in self.ledger.living:
            if entry.ended_at is None:
                continue
            held = usage_of(entry, entry.spent, 0.0, self.now + 1).held
            for team in self.fold.tenancy.path(entry.team)[:-1]:
                teams[team] = teams.get(team, NOTHING) + held
            if entry.effort is not None:
                efforts[entry.effort] = efforts.get(entry.effort, NOTHING) + held
        return teams, efforts


def resources(held: HeldTime) -> Resources:
    return Resources(held.cpu_milli_seconds, held.memory_byte_seconds, held.all_gpus_milli_seconds)


@given(st.integers(0, 10_000))
def test_what_was_held_is_what_the_ledger_says_whatever_happened(seed: int) -> None:
    story = Story(seed)
    story.live(60)
    spending = story.fold.stewardship.spending
    found = (
        {team: resources(held.ever) for team, held in spending.teams.items()},
        {effort: resources(held) for effort, held in spending.efforts.items()},
    )
    assert found == story.ledger_says()
    living = {job for job, record in story.fold.records.items() if record.outcome is None}
    assert set(spending.jobs) <= living, "what a job held by itself is forgotten with it"


@given(st.integers(0, 10_000))
def test_an_image_shows_all_of_it(seed: int) -> None:
    story = Story(seed)
    story.live(30)
    story.tell(BudgetReached(story.now, of_team("nlp"), "1 GPUh", 1.0, SPENT))
    again = fold_from(image_of(story.fold), Policy())
    assert again.stewardship == story.fold.stewardship
    assert again.running == story.fold.running


# --- Periods -------------------------------------------------------------------------------------------

spans = st.lists(st.tuples(st.integers(0, 80 * 86_400), st.integers(0, 40 * 86_400)), max_size=6)


@given(spans, st.randoms(use_true_random=False))
def test_in_a_period_counts_what_lies_in_it_in_whatever_order_attempts_leave(
    lives: list[tuple[int, int]], luck: Random
) -> None:
    holding = Holding(1000, 0, (("A40", 500),))
    one, other = TeamHeld(), TeamHeld()
    shuffled = list(lives)
    luck.shuffle(shuffled)
    for team, order in ((one, lives), (other, shuffled)):
        for since, lasts in order:
            team.add(holding, since, since + lasts, holding.between(since, since, since + lasts))
    assert one == other
    for kind, known in one.latest.items():
        begins, _ = period_of(kind, max(since + lasts for since, lasts in lives))
        assert known.since == begins
        assert one.ever - known.before == one.of(kind, begins)
        inside = (max(0, since + lasts - max(since, begins)) for since, lasts in lives)
        assert one.of(kind, begins).cpu_milli_seconds == 1000 * sum(map(int, inside))
        assert one.of(kind, begins + DAY) == HeldTime(), "of another period nothing is known"


# --- A budget that is spent ----------------------------------------------------------------------------


@pytest.fixture
def story() -> Story:
    return Story(0)


def submit(story: Story, job: str, **more: object) -> None:
    gang = single(cpus_milli=1500)
    story.tell(Submitted(story.now, Job(job, gang, story.now, **more)))  # type: ignore[arg-type]


def run(story: Story, job: str, attempt: int = 1) -> None:
    story.tell(Placed(story.now, job, attempt, (Seat("here", SHAPE, (0,), 250),)))
    story.tell(Started(story.now, job, attempt))


def reach(story: Story, subject: str) -> None:
    story.tell(BudgetReached(story.now, subject, "1 GPUh", 1.0, SPENT))


@pytest.mark.parametrize("subject", [of_effort("eval"), of_team("nlp"), of_team("lab")])
def test_what_is_submitted_while_the_budget_is_spent_is_held_and_says_so(story: Story, subject: str) -> None:
    reach(story, subject)
    submit(story, "1", effort="eval", team="nlp")
    record = story.fold.records["1"]
    assert record.state is State.HELD
    assert record.waiting is not None
    assert record.waiting.held_because == SPENT
    submit(story, "2", team="")
    assert story.fold.records["2"].state is State.QUEUED, "others are not concerned"


@pytest.mark.parametrize("kind", [Vacated, Retried])
def test_who_comes_back_to_the_queue_while_the_budget_is_spent_is_held(story: Story, kind: type) -> None:
    submit(story, "1", retries=1)
    run(story, "1")
    reach(story, of_job("1"))
    what = Outcome.FAILED if kind is Retried else "turn"
    story.tell(kind(story.now, "1", 1, what))
    record = story.fold.records["1"]
    assert (record.state, record.waiting.held_because) == (State.HELD, SPENT)  # type: ignore[union-attr]


def test_who_is_still_leaving_when_there_is_budget_again_waits_and_is_not_held(story: Story) -> None:
    submit(story, "1")
    run(story, "1")
    reach(story, of_job("1"))
    story.tell(Evicting(story.now, "1", 1, SPENT, hold=True))
    story.tell(BudgetFreed(story.now, of_job("1"), SPENT))
    story.tell(Vacated(story.now, "1", 1, SPENT))
    assert story.fold.records["1"].state is State.QUEUED


def test_why_a_job_stands_still_is_known_until_it_goes_on(story: Story) -> None:
    submit(story, "1")
    run(story, "1")
    story.tell(Suspended(story.now, "1", 1, SPENT))
    assert story.fold.running["1"].because == SPENT
    story.tell(Resumed(story.now, "1", 1))
    assert story.fold.running["1"].because is None


def test_what_is_said_of_a_job_is_forgotten_with_it(story: Story) -> None:
    submit(story, "1")
    run(story, "1")
    reach(story, of_job("1"))
    story.tell(Exited(story.now, "1", 1, Outcome.FAILED))
    assert story.fold.stewardship.spending.reached == {}


# --- Amending ------------------------------------------------------------------------------------------


def test_an_array_is_amended_as_one_and_counts_as_one(story: Story) -> None:
    template = Job("7", single(cpus_milli=1000), story.now)
    story.tell(ArraySubmitted(story.now, template, (1, 2, 3)))
    run(story, "7_1")
    story.tell(Amended(story.now, "7", Charter(budget="3 CPUh"), "ana"))
    jobs = [(r.running or r.waiting).job for j, r in story.fold.records.items()]  # type: ignore[union-attr]
    assert {job.charter.budget for job in jobs} == {"3 CPUh"}
    assert story.fold.arrays["7"].template.charter.budget == "3 CPUh"
    story.now += 8
    story.tell(Exited(story.now, "7_1", 1, Outcome.SUCCEEDED))
    assert story.fold.stewardship.spending.jobs["7"].cpu_milli_seconds == 1500 * 8


def test_who_is_amended_keeps_its_place_and_what_it_was_promised(story: Story) -> None:
    for job in "123":
        submit(story, job)
    story.tell(Promised(story.now, "2"))
    story.tell(Amended(story.now, "2", Charter(until=5.0), "ana"))
    [lane] = story.fold.lanes.values()
    assert [w.job.id for w in lane] == ["1", "2", "3"]
    assert lane[1].job.charter.until == 5.0
    assert story.fold.has_promised
