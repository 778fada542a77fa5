"""The agent's life: look, tell, wait; until it is told to go, or its one job is over.

Nothing is kept for later: counters say at the next word what was used since the last one that was heard. So a
server that is down or slow costs nothing but the figures of a moment. What a server refuses (a token, a node
that the token does not speak for) it will refuse again: that ends the agent, with the server's sentence.
"""

import contextlib
import importlib.util
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from muster.agent.look import Looker
from muster.client import Client
from muster.model.errors import MusterError
from muster.monitor.agents.message import LONGEST_PERIOD_SECONDS, Heard, Told
from muster.monitor.rates import PERIOD_SECONDS
from muster.wire import Refused

_REFUSALS = range(400, 500)
_FIRST_GPU = "/dev/nvidia0"
_COMES_WITHIN_SECONDS = 300.0  # a job whose prolog has started its agent
_STAYS_GONE_SECONDS = 30.0  # and a job is over: between two steps of it there may be nothing of it here


class Wanted(NamedTuple):
    """What the command line says."""

    node: str
    only: int | None = None
    period_seconds: float | None = None  # None: as often as the server looks


class Agent:
    """One node's."""

    def __init__(self, wanted: Wanted, client: Client, looker: Looker, say: Callable[[str], None]) -> None:
        self._wanted, self._client, self._looker, self._remark = wanted, client, looker, say
        self._period_seconds = wanted.period_seconds or PERIOD_SECONDS
        self._trouble = ""  # that was told
        self._seen_at: float | None = None  # its one job; None: never
        self._since = time.monotonic()
        self._told_to_go = threading.Event()

    def run(self) -> int:
        """Until the end; the exit code."""
        with self._ends_when_told():
            while not self._told_to_go.is_set():
                begun = time.monotonic()
                told = msgspec.structs.replace(self._looker.look(), period_seconds=self._period_seconds)
                self._tell(told)
                if self._is_over(told):
                    break
                self._told_to_go.wait(max(0.1, self._period_seconds - (time.monotonic() - begun)))
        return 0

    def _tell(self, told: Told) -> None:
        try:
            heard = msgspec.convert(self._client.tell_readings(msgspec.to_builtins(told)), Heard)
        except Refused as refused:
            if refused.status in _REFUSALS:
                raise
            self._say(f"{refused}; it is told again")
        except msgspec.ValidationError:
            self._say("what answers there is no Muster server that hears agents; it is told again")
        except MusterError as error:
            self._say(f"{error}; the agent goes on looking")
        else:
            self._heard(heard)

    def _heard(self, heard: Heard) -> None:
        if self._wanted.period_seconds is None:
            self._period_seconds = min(max(heard.period_seconds, 0.5), LONGEST_PERIOD_SECONDS)
        if heard.knows_node:
            self._say("")
        else:
            self._say(
                f"the server knows no node {self._wanted.node!r}; if sinfo calls it otherwise, say --node"
            )

    def _say(self, trouble: str) -> None:
        """Once, and once more when it is over."""
        if trouble != self._trouble:
            self._remark(trouble or "the server hears the agent again")
            self._trouble = trouble

    def _is_over(self, told: Told) -> bool:
        if self._wanted.only is None:
            return False
        now = time.monotonic()
        if any(reading.processes for reading in told.readings):
            self._seen_at = now
        if self._seen_at is None:
            return now - self._since > _COMES_WITHIN_SECONDS
        return now - self._seen_at > _STAYS_GONE_SECONDS

    @contextlib.contextmanager
    def _ends_when_told(self) -> Iterator[None]:
        before = {one: signal.signal(one, self._go) for one in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def _go(self, *_: object) -> None:
        self._told_to_go.set()


def run(wanted: Wanted, client: Client, say: Callable[[str], None]) -> int:
    """Be the agent of this node. Raises what is wrong from the start; ``say`` is given remarks."""
    looker = Looker(wanted.node, wanted.only)
    if os.path.exists(_FIRST_GPU) and importlib.util.find_spec("pynvml") is None:
        say("this node has GPUs that nothing reads here; install what does: pip install 'passmuster[gpu]'")
    try:
        if wanted.only is None:
            looker.check()
        return Agent(wanted, client, looker, say).run()
    finally:
        looker.close()
