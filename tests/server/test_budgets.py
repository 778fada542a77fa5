"""Budgets and dates at work, in virtual time: who is told, paused, ended and let go on, and when exactly."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from muster.model.charter import Charter, Verdict
from muster.model.errors import BadInput
from muster.model.events import (
    Amended,
    ArraySubmitted,
    Event,
    Evicting,
    Exited,
    Held,
    NodeSeen,
    Outcome,
    Placed,
    Released,
    Seat,
    Started,
    Stopping,
    Submitted,
    TeamSet,
    Vacated,
    Withdrawn,
)
from muster.model.job import Checkpoint, Job, JobId, Shape, single
from muster.model.message import Message
from muster.model.node import Device, Node
from muster.model.plan import Action, Evict, Resume, Stop, Suspend
from muster.model.policy import Policy
from muster.model.state import State
from muster.model.stewardship import (
    BudgetFreed,
    BudgetReached,
    BudgetWarned,
    Effort,
    EffortAmended,
    EffortClosed,
    EffortOpened,
    of_effort,
    of_job,
    of_team,
)
from muster.model.units import DAY, GIB, HOUR
from muster.server.config import parse_config
from muster.server.config_tables import Config
from muster.server.stewardship.budgets import Budgets
from muster.server.stewardship.dates import Dates
from muster.steward.budget import extended
from muster.store.fold import Fold
from virtual_time import run_at_once

CHECKPOINT = Checkpoint(on_signal=True)
Story = Callable[[], Awaitable[None]]


class Place:
    """What the service is to budgets and dates: a fold, a clock, and a list of what was noted."""

    def __init__(self, config: str = "") -> None:
        self.config: Config = parse_config(config, "muster.toml")
        self.fold, self.noted, self.actions = Fold(Policy()), [], []  # type: ignore[var-annotated]
        self.told: list[Message] = []
        self.tell: Callable[[Message], None] = self.told.append
        self.listeners: list[Callable[[Event], None]] = []
        self.when_clock_is_set: list[Callable[[], None]] = []
        devices = (Device("A40"),) * 4
        self.note(NodeSeen(self.now(), Node("here", 64_000, 64 * GIB, devices=devices)))
        for team in self.config.teams():
            self.note(TeamSet(self.now(), team))
        self.begin()

    def begin(self) -> None:
        """As a server does when it starts; again, as after a crash."""
        self.listeners.clear()
        self.budgets = Budgets(self, self.config)
        self.budgets.begin()
        self.dates = Dates(self)
        self.dates.begin()

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        return self.now() + self.fold.wall_ahead_seconds

    def note(self, event: Event, *actions: Action) -> None:
        self.fold.apply(event)
        self.noted.append(event)
        self.actions.extend(actions)
        for listener in list(self.listeners):
            listener(event)

    def reaches(self, job: Job) -> bool:
        return job.adopted is None

    def order(self, action: Action) -> None:
        self.actions.append(action)

    def submit(
        self, job: JobId, *, budget: str | None = None, until: float | None = None, **more: object
    ) -> None:
        charter = Charter(owner="ana", purpose="Does it?", budget=budget, until=until)
        gang = single(cpus_milli=1000, gpus=1)
        self.note(Submitted(self.now(), Job(job, gang, self.now(), owner="ana", charter=charter, **more)))  # type: ignore[arg-type]

    def run(self, job: JobId, attempt: int = 1, gpus: int = 1) -> None:
        seats = (Seat("here", Shape(cpus_milli=1000, gpus=gpus), tuple(range(gpus)), 1000),)
        self.note(Placed(self.now(), job, attempt, seats))
        self.note(Started(self.now(), job, attempt))

    def open(self, effort: str, **charter: object) -> None:
        now = self.now()
        made = Effort(
            name=effort,
            charter=Charter(owner="bea", **charter),
            opened_at=now,
            opened_by="bea",  # type: ignore[arg-type]
        )
        self.note(EffortOpened(now, made))

    def extend(self, job: JobId, **more: object) -> None:
        record = self.fold.records.get(job)
        entry = self.fold.arrays[job].template if record is None else (record.running or record.waiting).job  # type: ignore[union-attr]
        charter = extended(entry.charter, **more)  # type: ignore[arg-type]
        self.note(Amended(self.now(), job, charter, "ana", "more"))

    def state(self, job: JobId) -> State:
        return self.fold.records[job].state

    def when(self, kind: type[Event]) -> list[float]:
        return [event.at for event in self.noted if isinstance(event, kind)]


def lived(story: Story) -> Story:
    """A test that is a coroutine, run in virtual time."""

    def test() -> None:
        run_at_once(story)

    test.__name__, test.__doc__ = story.__name__, story.__doc__  # type: ignore[attr-defined]
    return test  # type: ignore[return-value]


def states(place: Place, *jobs: JobId) -> str:
    return " ".join(place.state(job) for job in jobs)


def near(at: float) -> object:
    """To within the two milliseconds that a timer may be late."""
    return pytest.approx(at, abs=0.002)


# --- A job ----------------------------------------------------------------------------------------------


@lived
async def test_a_job_is_told_at_80_percent_and_paused_when_its_budget_is_spent() -> None:
    place = Place()
    place.submit("1", budget="10 GPUh")
    await asyncio.sleep(HOUR)  # waiting costs nothing
    place.run("1", gpus=2)
    await asyncio.sleep(DAY)
    assert place.when(BudgetWarned) == [near(HOUR + 4 * HOUR)]
    assert place.when(BudgetReached) == [near(HOUR + 5 * HOUR)]
    warned, reached, *_ = place.told
    assert (warned.to, warned.asks, warned.urgent) == ("ana", False, False)
    assert "8 of 10 GPUh (80%)" in warned.sentence
    assert (reached.asks, reached.urgent) == (True, True)
    assert reached.action == 'muster extend 1 --budget +5GPUh --because "…"'


@lived
async def test_who_keeps_checkpoints_leaves_and_waits_held_others_stand_still() -> None:
    place = Place()
    for job, keeps in (("1", CHECKPOINT), ("2", None)):
        place.submit(job, budget="1 GPUh", checkpoint=keeps)
        place.run(job)
    await asyncio.sleep(HOUR + 1)
    assert [type(action) for action in place.actions] == [Evict, Suspend]
    assert (place.state("1"), place.state("2")) == (State.STOPPING, State.SUSPENDED)
    place.note(Vacated(place.now(), "1", 1, "left"))
    assert place.state("1") is State.HELD
    view = place.budgets.view(of_job("1"))
    assert view is not None
    assert view.decide_by == near(HOUR + DAY)


@pytest.mark.parametrize(
    ("how", "states"),
    [("requeue", (State.STOPPING, State.STOPPING)), ("suspend", (State.SUSPENDED, State.SUSPENDED))],
)
def test_how_it_is_paused_can_be_said(how: str, states: tuple[State, State]) -> None:
    async def story() -> None:
        place = Place(f'[budgets]\npause = "{how}"')
        for job, keeps in (("1", CHECKPOINT), ("2", None)):
            place.submit(job, budget="1 GPUh", checkpoint=keeps)
            place.run(job)
        await asyncio.sleep(HOUR + 1)
        assert (place.state("1"), place.state("2")) == states

    run_at_once(story)


@lived
async def test_an_extension_lets_go_on_what_was_paused_and_is_warned_of_anew() -> None:
    place = Place()
    place.submit("1", budget="1 GPUh")
    place.run("1")
    await asyncio.sleep(1.5 * HOUR)  # half an hour of it stands still, and is held all the same
    place.extend("1", budget="+1 GPUh")
    assert place.state("1") is State.RUNNING
    assert isinstance(place.actions[-1], Resume)
    await asyncio.sleep(HOUR)
    assert place.when(BudgetWarned) == [near(0.8 * HOUR), near(1.6 * HOUR)]
    assert place.when(BudgetReached) == [near(HOUR), near(2 * HOUR)]


@lived
async def test_nobody_decides_and_what_stands_still_ends_out_of_budget() -> None:
    place = Place('[budgets]\ndecide_suspended = "30m"')
    place.submit("1", budget="1 GPUh")
    place.run("1")
    await asyncio.sleep(2 * HOUR)
    [stopping] = [event for event in place.noted if isinstance(event, Stopping)]
    assert stopping.at == near(1.5 * HOUR)
    assert stopping.verdict is Verdict.OUT_OF_BUDGET
    assert place.told[-1].sentence.startswith("job 1 has ended, out of budget")
    assert isinstance(place.actions[-1], Stop)


@lived
async def test_nobody_decides_and_what_waits_ends_out_of_budget() -> None:
    place = Place()
    place.submit("1", budget="1 GPUh", checkpoint=CHECKPOINT)
    place.run("1")
    await asyncio.sleep(HOUR + 1)
    place.note(Vacated(place.now(), "1", 1, "left"))
    await asyncio.sleep(2 * DAY)
    [withdrawn] = [event for event in place.noted if isinstance(event, Withdrawn)]
    assert (withdrawn.at, withdrawn.verdict) == (near(HOUR + DAY), Verdict.OUT_OF_BUDGET)
    assert place.told[-1].kind == "verdict"


@lived
async def test_what_was_held_before_counts_and_other_attempts_go_on_from_there() -> None:
    place = Place()
    place.submit("1", budget="2 GPUh")
    place.run("1")
    await asyncio.sleep(HOUR)
    place.note(Vacated(place.now(), "1", 1, "turn"))
    await asyncio.sleep(5 * HOUR)
    place.run("1", attempt=2)
    await asyncio.sleep(2 * HOUR)
    assert place.when(BudgetReached) == [near(7 * HOUR)]


@lived
async def test_an_array_has_one_budget_for_all_of_its_members() -> None:
    place = Place()
    template = Job("7", single(gpus=1), 0.0, owner="ana", charter=Charter(budget="2 GPUh"))
    place.note(ArraySubmitted(0.0, template, (1, 2, 3)))
    place.run("7_1")
    place.run("7_2")
    await asyncio.sleep(1.75 * HOUR)
    assert place.when(BudgetReached) == [near(HOUR)]
    assert states(place, "7_1", "7_2", "7_3") == "SUSPENDED SUSPENDED HELD"
    place.extend("7", budget="3 GPUh")
    assert states(place, "7_1", "7_2", "7_3") == "SUSPENDED SUSPENDED HELD", "that is spent as well by now"
    place.extend("7", budget="8 GPUh")
    assert states(place, "7_1", "7_2", "7_3") == "RUNNING RUNNING QUEUED"


@lived
async def test_what_a_person_has_held_stays_held_when_there_is_budget_again() -> None:
    place = Place()
    template = Job("7", single(gpus=1), 0.0, owner="ana", charter=Charter(budget="1 GPUh"))
    place.note(ArraySubmitted(0.0, template, (1, 2)))
    place.note(Held(place.now(), "7_2"))
    place.run("7_1")
    await asyncio.sleep(HOUR + 1)
    place.extend("7", budget="2 GPUh")
    assert (place.state("7_1"), place.state("7_2")) == (State.RUNNING, State.HELD)


@lived
async def test_a_job_that_ends_before_is_not_spoken_of() -> None:
    place = Place()
    place.submit("1", budget="1 GPUh")
    place.run("1")
    await asyncio.sleep(0.5 * HOUR)
    place.note(Exited(place.now(), "1", 1, Outcome.SUCCEEDED))
    await asyncio.sleep(DAY)
    assert place.told == []


@lived
async def test_a_budget_that_comes_later_counts_what_was_held_before() -> None:
    place = Place()
    place.submit("1")
    place.run("1")
    await asyncio.sleep(HOUR)
    with pytest.raises(BadInput, match="spent already"):
        place.budgets.check_extension(of_job("1"), "1 GPUh")
    place.budgets.check_extension(of_job("1"), "2 GPUh")
    place.extend("1", budget="2 GPUh")
    await asyncio.sleep(2 * HOUR)
    assert place.when(BudgetReached) == [near(2 * HOUR)]


@lived
async def test_money_is_spent_by_price() -> None:
    place = Place('[prices]\ncurrency = "EUR"\ngpu = 1.8\ngpus = { A40 = 0.9 }\ncpu = 0.1')
    place.submit("1", budget="10 EUR")
    place.run("1")
    await asyncio.sleep(DAY)
    assert place.when(BudgetReached) == [near(10 * HOUR)]


@lived
async def test_what_is_paused_stays_so_when_nothing_has_a_price_any_more() -> None:
    place = Place('[prices]\ncurrency = "EUR"\ngpu = 2.0\n')
    place.submit("1", budget="3 EUR")
    place.run("1")
    await asyncio.sleep(2 * HOUR)
    assert place.state("1") is State.SUSPENDED
    place.budgets.configure(parse_config("", "muster.toml"))
    assert place.state("1") is State.SUSPENDED
    place.extend("1", budget="5 GPUh")
    assert place.state("1") is State.RUNNING


@lived
async def test_a_budget_that_makes_no_sense_here_is_said_at_submit() -> None:
    place = Place()
    job = Job("1", single(cpus_milli=1000), 0.0, charter=Charter(budget="3 GPUh"))
    assert "will never be spent" in place.budgets.check(job)[0]
    with pytest.raises(BadInput, match="nothing has a price here"):
        place.budgets.check(replace(job, charter=Charter(budget="3 EUR")))


# --- Efforts --------------------------------------------------------------------------------------------


@lived
async def test_the_budget_of_an_effort_binds_its_jobs_together_and_nobody_else() -> None:
    place = Place()
    place.open("eval", budget="3 GPUh")
    for job, effort in (("1", "eval"), ("2", "eval"), ("3", None), ("4", "eval")):
        place.submit(job, effort=effort)
    for job in "123":
        place.run(job)
    await asyncio.sleep(2 * HOUR)
    assert place.when(BudgetReached) == [near(1.5 * HOUR)]
    assert states(place, *"1234") == "SUSPENDED SUSPENDED RUNNING HELD"
    assert {message.to for message in place.told} == {"bea"}
    assert "muster effort extend eval" in place.told[-1].action
    place.submit("5", effort="eval")
    assert place.state("5") is State.HELD, "nothing new of it starts"


@lived
async def test_an_effort_that_is_extended_goes_on() -> None:
    place = Place()
    place.open("eval", budget="1 GPUh")
    place.submit("1", effort="eval")
    place.submit("2", effort="eval")
    place.run("1")
    await asyncio.sleep(HOUR + 1)
    charter = extended(place.fold.stewardship.efforts["eval"].charter, budget="+2 GPUh")
    place.note(EffortAmended(place.now(), "eval", charter, "bea", "it learns"))
    assert (place.state("1"), place.state("2")) == (State.RUNNING, State.QUEUED)
    assert [entry.what for entry in place.fold.stewardship.stories["eval"]][-3:] == [
        "paused",
        "amended",
        "goes on",
    ]


@lived
async def test_a_job_that_joins_an_effort_spends_of_its_budget_from_where_it_last_started() -> None:
    place = Place()
    place.open("eval", budget="2 GPUh")
    place.submit("1", adopted="slurm")
    place.run("1")
    await asyncio.sleep(HOUR)
    assert place.budgets.view(of_effort("eval")).spent == 0  # type: ignore[union-attr]
    place.note(Amended(place.now(), "1", Charter(owner="bea"), "bea", effort="eval"))
    assert place.budgets.view(of_effort("eval")).share == pytest.approx(0.5)  # type: ignore[union-attr]
    assert place.fold.stewardship.tallies["eval"].living == 1
    place.note(Exited(place.now(), "1", 1, Outcome.SUCCEEDED, 0))
    assert place.fold.stewardship.tallies["eval"].living == 0
    assert place.budgets.view(of_effort("eval")).share == pytest.approx(0.5)  # type: ignore[union-attr]
    told = [entry.text for entry in place.fold.stewardship.stories["eval"]]
    assert told[-2:] == ["job 1 : joined", "job 1 : succeeded"]


@lived
async def test_nobody_joins_an_effort_that_is_closed_or_none() -> None:
    place = Place()
    place.submit("1")
    with pytest.raises(BadInput):
        place.note(Amended(place.now(), "1", Charter(), "bea", effort="eval"))
    assert place.fold.records["1"].waiting.job.effort is None  # type: ignore[union-attr]


@lived
async def test_an_effort_that_nobody_extends_is_closed_with_all_that_is_left_of_it() -> None:
    place = Place()
    place.open("eval", budget="1 GPUh")
    for job in "12":
        place.submit(job, effort="eval")
    place.run("1")
    await asyncio.sleep(HOUR + 2 * HOUR)
    assert place.state("1") is State.STOPPING
    assert place.told[-1].sentence.startswith("what was suspended of effort eval has ended")
    place.note(Exited(place.now(), "1", 1, Outcome.STOPPED))
    await asyncio.sleep(DAY)
    assert place.state("2") is State.ENDED
    [closed] = [event for event in place.noted if isinstance(event, EffortClosed)]
    assert (closed.at, closed.verdict) == (near(HOUR + DAY), Verdict.OUT_OF_BUDGET)


@lived
async def test_what_two_budgets_keep_back_goes_on_when_both_have_room() -> None:
    place = Place()
    place.open("eval", budget="1 GPUh")
    place.submit("1", budget="1 GPUh", effort="eval")
    place.run("1")
    await asyncio.sleep(HOUR + 1)
    assert len(place.when(BudgetReached)) == 2
    place.extend("1", budget="9 GPUh")
    assert place.state("1") is State.SUSPENDED
    place.note(EffortAmended(place.now(), "eval", Charter(owner="bea", budget="9 GPUh"), "bea"))
    assert place.state("1") is State.RUNNING


# --- Teams ----------------------------------------------------------------------------------------------

TEAMS = """
[team.lab]
leads = ["prof"]
budget = "48 GPUh per week"
[team.nlp]
parent = "lab"
[team.ops]
"""
MONDAY = 4 * DAY


@lived
async def test_a_team_is_held_back_until_its_period_is_over_and_nobody_ends() -> None:
    place = Place(TEAMS)
    await asyncio.sleep(MONDAY - DAY)
    for job, team in (("1", "nlp"), ("2", "lab"), ("3", "ops")):
        place.submit(job, team=team)
        place.run(job)
    await asyncio.sleep(DAY + HOUR)  # a day of two GPUs in the week before, an hour in this one
    assert place.when(BudgetReached) == [], "each week has its own"
    await asyncio.sleep(DAY - HOUR / 2)
    assert place.when(BudgetReached) == [near(MONDAY + DAY)]
    assert place.told[-1].to == "prof"
    assert (place.state("1"), place.state("3")) == (State.SUSPENDED, State.RUNNING)
    await asyncio.sleep(2 * HOUR)
    assert place.state("1") is State.STOPPING, "it gives its seats back after a while, and waits"
    for job in "12":
        place.note(Vacated(place.now(), job, 1, "left"))
    assert (place.state("1"), place.state("2")) == (State.HELD, State.HELD)
    await asyncio.sleep(6 * DAY)
    assert place.when(BudgetFreed) == [near(MONDAY + 7 * DAY)]
    assert (place.state("1"), place.state("2")) == (State.QUEUED, State.QUEUED)


@lived
async def test_a_team_whose_budget_is_raised_goes_on_at_once() -> None:
    place = Place(TEAMS)
    place.submit("1", team="nlp")
    place.run("1", gpus=2)
    await asyncio.sleep(DAY + 1)
    assert place.state("1") is State.SUSPENDED
    place.budgets.configure(parse_config(TEAMS.replace("48 GPUh", "96 GPUh"), "muster.toml"))
    assert place.state("1") is State.RUNNING


# --- After a crash --------------------------------------------------------------------------------------


@lived
async def test_a_restart_tells_nobody_anew_and_goes_on_with_the_time_to_decide() -> None:
    place = Place()
    place.submit("1", budget="1 GPUh")
    place.run("1")
    await asyncio.sleep(HOUR + 600)
    told = len(place.told)
    place.begin()
    await asyncio.sleep(600)
    assert len(place.told) == told
    await asyncio.sleep(HOUR)
    assert place.when(Stopping) == [near(2 * HOUR)]


@lived
async def test_what_a_crash_has_left_running_is_paused_at_the_start() -> None:
    place = Place()
    place.submit("1", budget="1 GPUh")
    place.run("1")
    place.listeners.clear()
    await asyncio.sleep(0.5 * HOUR)
    place.fold.apply(BudgetReached(place.now(), of_job("1"), "0.5 GPUh", 0.5, "its budget is spent"))
    place.fold.apply(Amended(place.now(), "1", Charter(budget="0.5 GPUh"), "ana"))
    place.begin()
    assert place.state("1") is State.SUSPENDED


@lived
async def test_what_was_extended_before_a_crash_goes_on_at_the_start() -> None:
    place = Place()
    place.submit("1", budget="1 GPUh")
    place.run("1")
    await asyncio.sleep(HOUR + 1)
    place.fold.apply(Amended(place.now(), "1", Charter(budget="5 GPUh"), "ana"))
    place.begin()
    assert place.state("1") is State.RUNNING


# --- Dates ----------------------------------------------------------------------------------------------


@lived
async def test_a_job_ends_at_its_date_out_of_time_and_is_told_a_day_before() -> None:
    place = Place()
    place.submit("1", until=10 * DAY)
    place.submit("2", until=10 * DAY)
    place.run("1")
    await asyncio.sleep(9 * DAY + 1)
    assert [message.about for message in place.told] == [of_job("1"), of_job("2")]
    assert place.told[0].action == 'muster extend 1 --until +7d --because "…"'
    place.begin()
    await asyncio.sleep(2 * DAY)
    [stopping] = [event for event in place.noted if isinstance(event, Stopping)]
    [withdrawn] = [event for event in place.noted if isinstance(event, Withdrawn)]
    assert (stopping.verdict, withdrawn.verdict) == (Verdict.OUT_OF_TIME, Verdict.OUT_OF_TIME)
    assert (stopping.at, withdrawn.at) == (near(10 * DAY), near(10 * DAY))
    assert len(place.told) == 4, "once before, and once when it ends"


@lived
async def test_a_date_that_is_moved_counts_from_then_on() -> None:
    place = Place()
    place.submit("1", until=DAY)
    await asyncio.sleep(0.5 * DAY)
    place.extend("1", until=3 * DAY)
    await asyncio.sleep(DAY)
    assert place.state("1") is State.QUEUED
    await asyncio.sleep(2 * DAY)
    assert place.when(Withdrawn) == [near(3 * DAY)]


@lived
async def test_an_array_and_an_effort_end_at_their_date_as_one() -> None:
    place = Place()
    template = Job("7", single(gpus=1), 0.0, owner="ana", charter=Charter(until=DAY))
    place.note(ArraySubmitted(0.0, template, tuple(range(1, 1500))))
    place.open("eval", until=2 * DAY)
    place.submit("8", effort="eval")
    await asyncio.sleep(3 * DAY)
    assert sorted(set(place.when(Withdrawn))) == [near(DAY), near(2 * DAY)]
    assert place.fold.stewardship.efforts["eval"].verdict is Verdict.OUT_OF_TIME
    assert len(place.told) == 4, "each once before and once when it ends"


@lived
async def test_a_clock_that_is_set_moves_dates_with_it() -> None:
    place = Place()
    place.submit("1", until=10 * DAY)
    place.submit("2", until=20 * DAY)
    place.fold.wall_ahead_seconds = 9.5 * DAY
    for see_to_it in place.when_clock_is_set:
        see_to_it()
    await asyncio.sleep(DAY)
    assert place.when(Withdrawn) == [near(0.5 * DAY)]
    place.fold.wall_ahead_seconds = 0.0
    for see_to_it in place.when_clock_is_set:
        see_to_it()
    await asyncio.sleep(18 * DAY)
    assert place.when(Withdrawn) == [near(0.5 * DAY)]


# --- Views ----------------------------------------------------------------------------------------------


@lived
async def test_what_is_spent_is_seen_also_of_a_team_and_an_effort() -> None:
    place = Place(TEAMS)
    place.open("eval", budget="10 GPUh")
    place.submit("1", effort="eval", team="nlp", budget="5 GPUh")
    assert place.budgets.view(of_job("1")).spent == 0  # type: ignore[union-attr]
    place.run("1")
    await asyncio.sleep(HOUR)
    seen = {
        s: place.budgets.view(s) for s in (of_job("1"), of_effort("eval"), of_team("lab"), of_team("ops"))
    }
    shares = [view and (view.text, round(view.spent, 6), round(view.share, 6)) for view in seen.values()]
    assert shares == [("5 GPUh", 1, 0.2), ("10 GPUh", 1, 0.1), ("48 GPUh per week", 1, 0.020833), None]


def test_released_by_the_budget_are_those_it_held() -> None:
    async def story() -> None:
        place = Place()
        place.open("eval", budget="1 GPUh")
        place.submit("1", effort="eval")
        place.submit("2", effort="eval", held=True)
        place.run("1")
        await asyncio.sleep(HOUR + 1)
        place.note(EffortAmended(place.now(), "eval", Charter(owner="bea", budget="5 GPUh"), "bea"))
        assert place.when(Released) == []
        assert place.when(Evicting) == []
        assert place.state("2") is State.HELD

    run_at_once(story)
