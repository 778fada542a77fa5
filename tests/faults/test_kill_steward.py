"""The server is killed again and again while efforts, budgets, exits, dates and reviews end and pause work.

Afterwards the journal tells a story without holes: what was acknowledged is there; a verdict and its stop
agree; nothing was placed that was kept back at that moment; whoever had to be told was told; and folding from
an image comes to the same as folding from the beginning. ``MUSTER_KILLS=200`` makes it a long night.
"""

import os
import threading
import time
from collections.abc import Callable
from random import Random

from muster.client import Client, NoServer, Refused
from muster.model.events import Event, Exited, Placed, Stopping
from muster.model.ledger import usage_of
from muster.model.policy import Policy
from muster.model.post import Messaged
from muster.model.state import State
from muster.model.stewardship import BudgetReached, EffortClosed, of_effort
from muster.monitor.ledger import Ledger
from muster.store.fold import Fold
from muster.store.image import fold_from, image_of
from muster.store.journal import Journal
from servers import Server, View, until

CONFIGURATION = """
[monitor]
period = "1s"
[review]
schedule = "daily 03:00"
opens = "2d"
notice = "0.5s"
timezone = "Europe/Berlin"
[budgets]
decide = "4s"
decide_suspended = "2s"
[attention]
efforts = 1000
[team.poor]
budget = "0.00004 CPUh"
"""
TALKS = (
    'for i in 1 2 3 4 5 6 7 8 9; do echo "{\\"acc\\": 0.$i, \\"step\\": $i}"; sleep 0.1; done; exec sleep 600'
)
KILLS = int(os.environ.get("MUSTER_KILLS", "5"))
SEED = int(os.environ.get("MUSTER_SEED", "50"))
LATER = time.strftime("%Y-%m-%d", time.localtime(time.time() + 5 * 86_400))


def killed_now_and_then(server: Server, luck: Random) -> None:
    """Some lives are long enough for a review to open, a date to come, a decision to be overdue."""
    for _ in range(KILLS):
        server.launch()
        until(server.answers, "the server to answer")
        time.sleep(luck.uniform(0.1, 3.0))
        server.kill()
    server.start()


class Lead:
    """Does whatever an owner can do, to whatever is there, and keeps in mind what was acknowledged."""

    def __init__(self, server: Server, luck: Random) -> None:
        self._luck, self._client = luck, server.client()
        self.efforts: list[str] = []
        self.notes: list[tuple[str, str]] = []
        self.closed: set[str] = set()
        self._said = 0
        self._doings: list[Callable[[], object]] = [self.submit] * 6 + [self.open] * 2
        self._doings += [self.close, self.pause, self.resume, self.note, self.extend, self.defend]
        self._doings += [self.extend_job, self.report, self.review, self.requeue, self.release]

    def do_something(self) -> None:
        try:
            self._luck.choice(self._doings)()
        except NoServer:
            time.sleep(0.01)
        except Refused as refusal:
            if refusal.status not in (400, 404, 409):
                raise

    def end(self) -> None:
        self._client.close()

    def open(self) -> None:
        self._said += 1
        name, charter = f"effort-{self._said}", {"for": f"Does number {self._said} hold up?"}
        charter |= self._luck.choice([{}, {"budget": "0.00002 CPUh"}, {"success": ["acc > 0.7"]}])
        first_wins = self._luck.random() < 0.3
        self._client.post("/efforts", {"name": name, "charter": charter, "first_wins": first_wins})
        self.efforts.append(name)

    def submit(self) -> None:
        more = self._luck.choice(
            [{}, {"success": ["acc > 0.5"]}, {"budget": "0.00001 CPUh"}, {"array": "0-1"}, {"team": "poor"}]
        )
        if self._luck.random() < 0.3:
            more = more | {"checkpoint_every": "1h"}
        if self.efforts and self._luck.random() < 0.7:
            more = more | {"effort": self._effort()}
        self._client.submit(["sh", "-c", TALKS], cpus=0.05, **more)

    def _effort(self) -> str:
        return self._luck.choice(self.efforts[-4:]) if self.efforts else "none"

    def _job(self) -> str:
        living = self._client.jobs(limit=0)
        return str(self._luck.choice(living)["id"]).partition("_")[0] if living else "1"

    def close(self) -> None:
        name = self._effort()
        self._client.on_effort(name, "close", {"verdict": self._luck.choice(["won", "lost"])})
        self.closed.add(name)

    def pause(self) -> None:
        self._client.on_effort(self._effort(), "pause", {})

    def resume(self) -> None:
        self._client.on_effort(self._effort(), "resume", {})

    def note(self) -> None:
        self._said += 1
        name, text = self._effort(), f"note {self._said}"
        self._client.on_effort(name, "note", {"text": text})
        self.notes.append((name, text))

    def extend(self) -> None:
        more = {"budget": f"+{self._luck.choice([0.00001, 1])} CPUh"}
        self._client.on_effort(self._effort(), "extend", {"charter": more, "because": "it needs more"})

    def defend(self) -> None:
        what = self._luck.choice([self._effort(), self._job()])
        self._client.defend(what, because="it is still needed", until=LATER)

    def extend_job(self) -> None:
        self._client.extend(self._job(), budget="1 CPUh", because="a little more")

    def report(self) -> None:
        self._client.report(self._job(), {"acc": self._luck.random()})

    def review(self) -> None:
        self._client.close_review()

    def requeue(self) -> None:
        self._client.requeue(self._job())

    def release(self) -> None:
        self._client.release(self._job())


def test_the_steward_s_word_holds_however_often_the_server_dies() -> None:
    luck, server = Random(SEED), Server()
    server.home.configuration.write_text(CONFIGURATION)
    lead = Lead(server, luck)
    killer = threading.Thread(target=killed_now_and_then, args=(server, Random(SEED + 1)))
    try:
        killer.start()
        while killer.is_alive():
            lead.do_something()
            time.sleep(luck.expovariate(50))
        killer.join()
        with server.client() as client:
            check_efforts(client, lead)
        assert "Traceback" not in server.said()
        check_journal(server)
    finally:
        killer.join()
        lead.end()
        server.close()


def check_efforts(client: Client, lead: Lead) -> None:
    for name in lead.closed:
        assert client.effort(name)["verdict"] is not None
        until(lambda: not client.effort(name)["jobs"], lambda: f"the end of {left_of(client, name)}")  # noqa: B023
    for name, text in lead.notes:
        assert text in [line["text"] for line in client.effort(name)["story"]]


def left_of(client: Client, effort: str) -> list[View]:
    return [client.job(job) for job in client.effort(effort)["jobs"]]


# --- The journal ------------------------------------------------------------------------------------


def check_journal(server: Server) -> None:
    server.terminate()
    journal = Journal.open(f"sqlite:///{server.home.database}")
    try:
        events = list(journal.events_after(0))
    finally:
        journal.close()
    fold = replayed(events)
    check_verdicts(events)
    check_told(events)
    for at in (len(events) // 3, len(events) // 2, len(events) - 7):
        assert image_of(continued(events, at)) == image_of(fold)
    living = [(r.state, entry.job) for r in fold.records.values() if (entry := r.running or r.waiting)]
    spent = [state for state, job in living if fold.exhausted(job)]
    assert set(spent) <= {State.HELD, State.SUSPENDED, State.STOPPING, State.STARTING}


def replayed(events: list[Event]) -> Fold:
    """Nothing is placed that is kept back; and what is held is what the ledger says."""
    fold, ledger = Fold(Policy()), Ledger()
    for event in events:
        if isinstance(event, Placed):
            waiting = fold.records[event.job].waiting
            assert waiting is not None
            assert fold.kept_back(waiting.job) is None, event
        fold.apply(event)
        running = fold.records[event.job].running if isinstance(event, Placed) else None
        ledger.apply(event, None if running is None else running.job)
    found = fold.stewardship.spending.efforts
    assert {name: held.cpu_milli_seconds for name, held in found.items()} == cpu_time_by_effort(ledger)
    return fold


def cpu_time_by_effort(ledger: Ledger) -> dict[str, int]:
    """In thousandths of a cpu times seconds, of attempts that are over."""
    sums: dict[str, int] = {}
    for entry in ledger.living:
        if entry.ended_at is not None and entry.effort is not None:
            held = usage_of(entry, entry.spent, 0.0, entry.ended_at + 1).held
            sums[entry.effort] = sums.get(entry.effort, 0) + held.cpus_milli
    return sums


def continued(events: list[Event], at: int) -> Fold:
    """Folded as by a server that found an image of the first so many."""
    fold = Fold(Policy())
    for event in events[:at]:
        fold.apply(event)
    fold = fold_from(image_of(fold), Policy())
    for event in events[at:]:
        fold.apply(event)
    return fold


def check_verdicts(events: list[Event]) -> None:
    """Who was told to stop with a verdict has ended with it, or with what was said later."""
    told: dict[tuple[str, int], Stopping] = {}
    for event in events:
        if isinstance(event, Stopping):
            told[event.job, event.attempt] = event
        elif isinstance(event, Exited) and (last := told.get((event.job, event.attempt))):
            assert last.verdict is None or event.verdict is last.verdict, (last, event)


def check_told(events: list[Event]) -> None:
    about = {(event.message.about, event.message.kind) for event in events if isinstance(event, Messaged)}
    for event in events:
        if isinstance(event, BudgetReached):
            assert (event.subject, "budget") in about, event
        elif isinstance(event, EffortClosed) and event.by == "muster":
            assert (of_effort(event.effort), "verdict") in about, event
