"""The server is killed again and again while jobs come, run and end.

Whatever was acknowledged is there afterwards and has ended as it should have, nothing ran twice, and nothing
is left behind. ``MUSTER_KILLS=200`` makes it a long night for the server.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from random import Random

from muster.client import Client, NoServer, Refused
from servers import Server, View, until

KILLS = int(os.environ.get("MUSTER_KILLS", "12"))
MOST_SLEEPERS = 8  # more would leave no room for the others

Expected = tuple[str, int | None]  # an outcome, and an exit code


def killed_now_and_then(server: Server, luck: Random) -> None:
    """Before it answers, while it finds out what happened, while it works."""
    for _ in range(KILLS):
        server.launch()
        if luck.random() < 0.8:
            until(server.answers, "the server to answer")
        time.sleep(luck.uniform(0.0, 0.5))
        server.kill()
    server.start()


class Customer:
    """Submits and stops, and keeps in mind what it was promised."""

    def __init__(self, server: Server, luck: Random) -> None:
        self._server, self._luck = server, luck
        self._client = server.client()
        self._once = server.work / "once.txt"
        self.expected: dict[str, Expected] = {}
        self._sleepers: list[str] = []
        self._doings: list[Callable[[], None]] = [self.submit] * 6
        self._doings += [self.submit_array, self.submit_sleeper, self.stop, self.submit_dependent]

    def close(self) -> None:
        self._client.close()

    def do_something(self) -> None:
        try:
            self._luck.choice(self._doings)()
        except NoServer:
            time.sleep(0.01)  # not acknowledged: it may be there or not

    def submit(self) -> None:
        code = self._luck.choice([0, 0, 1, 3, 77])
        self._acknowledged(self._submitted(f"exit {code}"), code)

    def submit_array(self) -> None:
        members = self._luck.randint(2, 4)
        view = self._submitted("exit $MUSTER_ARRAY_INDEX", array=f"0-{members - 1}")
        for index in range(members):
            self.expected[f"{view['id']}_{index}"] = _as_told(index)

    def submit_sleeper(self) -> None:
        if len(self._sleepers) == MOST_SLEEPERS:
            return self.stop()
        view = self._submitted("exec sleep 1000")
        self.expected[view["id"]] = ("STOPPED", None)
        self._sleepers.append(view["id"])
        return None

    def stop(self) -> None:
        """One that sleeps; told again until it is acknowledged, or known to have happened."""
        if self._sleepers:
            try:
                self._client.stop(self._sleepers[0])
            except Refused as refusal:
                if refusal.status != 409:
                    raise
            self._sleepers.pop(0)

    def submit_dependent(self) -> None:
        """On what ended well, or badly, or is still to end."""
        known = [job for job, (outcome, _) in self.expected.items() if outcome != "STOPPED"]
        if not known:
            return
        before = self._luck.choice(known[-5:])
        met = self.expected[before][0] == "SUCCEEDED"
        try:
            view = self._submitted("exit 9", after_ok=[before])
        except Refused as refusal:
            if met or "could never start" not in str(refusal):
                raise
        else:
            self.expected[view["id"]] = _as_told(9) if met else ("DEPENDENCY_FAILED", None)

    def stop_all_sleepers(self) -> None:
        while self._sleepers:
            self.stop()

    def _submitted(self, end: str, **options: object) -> View:
        script = f'echo "$MUSTER_JOB_ID" >> {self._once}; {end}'
        return self._client.submit(["sh", "-c", script], cpus=0.1, **options)

    def _acknowledged(self, view: View, code: int) -> None:
        self.expected[view["id"]] = _as_told(code)


def _as_told(code: int) -> Expected:
    return ("SUCCEEDED" if code == 0 else "FAILED"), code


def live(client: Client) -> list[View]:
    return client.jobs(limit=0)


def test_nothing_that_was_acknowledged_is_lost_and_nothing_runs_twice() -> None:
    luck = Random(20)
    server = Server()
    customer = Customer(server, luck)
    killer = threading.Thread(target=killed_now_and_then, args=(server, Random(21)))
    try:
        killer.start()
        while killer.is_alive():
            customer.do_something()
            time.sleep(luck.expovariate(50))
        killer.join()
        customer.stop_all_sleepers()
        check(server, customer)
    finally:
        killer.join()
        customer.close()
        server.close()


def check(server: Server, customer: Customer) -> None:
    with server.client() as client:
        stop_unacknowledged_sleepers(client)
        until(lambda: not live(client), lambda: f"all jobs to end: {live(client)}")
        found = {job: client.job(job) for job in customer.expected}
    wrong = {
        job: (expected, view["outcome"], view["exit_code"], view["reason"])
        for job, expected in customer.expected.items()
        if expected != ((view := found[job])["outcome"], view["exit_code"])
    }
    assert not wrong
    ran = Counter((server.work / "once.txt").read_text().split())
    assert not {job: times for job, times in ran.items() if times > 1}
    never = {job for job, (_, code) in customer.expected.items() if code is not None} - ran.keys()
    assert not never
    assert len(customer.expected) > KILLS
    server.terminate()
    assert (server.attempts_kept(), server.processes()) == (set(), [])


def stop_unacknowledged_sleepers(client: Client) -> None:
    """Those that were submitted at the very moment of a kill, so that nobody knows their ids."""
    for view in live(client):
        if "sleep 1000" in view["command"] and view["state"] != "STOPPING":
            client.stop(view["id"])
