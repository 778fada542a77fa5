"""One stream for each browser: what it missed, then what changes, one tick a second.

The server looks once a second, however many watch, and only while somebody does. A tick has a number; what
changed in the last ticks is kept, so whoever comes back says the last number that they heard, as browsers do
by themselves, and is told what they missed as one tick: the latest of each thing. Who was away for longer,
or has heard of another server, gets everything. A slow listener skips ticks likewise: nothing queues up.

The numbers that stand for places on the map are positions among the layout's boxes; when the layout changes,
the page is told to load anew.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from muster.layout.states import State
from muster.server.seeing.scene import GpuNow, NodeNow, Scene, Tally
from muster.server.seeing.seeing import Seeing
from muster.server.service import Service
from muster.web.replies import NO_STORE, Reply

TICK_SECONDS = 1.0
_KEPT = 300  # ticks, so that a browser may be away for minutes
_STATES = {state: position for position, state in enumerate(State)}
_STREAM = "text/event-stream; charset=utf-8"
_LAST = b"last-event-id"
_encode = msgspec.json.Encoder().encode

Numbers = dict[int, list[Any]]


class Pulse(msgspec.Struct, frozen=True):
    """What a page was drawn from: the stream goes on from there."""

    mark: str
    at: float
    facts: int


class Tick(msgspec.Struct, frozen=True):
    """What changed since the one before. Places by their number: what they show now."""

    number: int
    at: float
    facts: int  # how many there are; when it grows, tables are out of date
    counts: dict[str, int]
    levels: dict[str, Numbers]  # gpus, nodes, racks


class Live:
    """The ticks, and those who listen."""

    def __init__(self, service: Service, seeing: Seeing) -> None:
        self._service, self._seeing = service, seeing
        self._epoch = secrets.token_hex(4)
        self._facts = 0
        service.listeners.append(self._hear)
        self._scene: Scene | None = None
        self._numbers: dict[str, int] = {}
        self._ticks: deque[Tick] = deque(maxlen=_KEPT)
        self._number = 0
        self._said: dict[tuple[int, str], bytes] = {}  # of this tick, by who heard what last
        self._news = asyncio.Event()
        self._listening = 0
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def _hear(self, _: object) -> None:
        self._facts += 1

    # --- For pages ----------------------------------------------------------------------------------

    def scene(self) -> Scene:
        """As of the last tick; a new one if that was too long ago, or before something that has happened."""
        scene = self._scene
        if scene is None or self._service.wall() - scene.at >= TICK_SECONDS or self._is_behind:
            scene = self._tick()
        return scene

    @property
    def _is_behind(self) -> bool:
        return self._ticks[-1].facts != self._facts

    def pulse(self) -> Pulse:
        scene = self.scene()
        return Pulse(f"{self._epoch}-{self._number}", scene.at, self._facts)

    def numbers(self) -> Mapping[str, int]:
        """The number of every box of the map, by its id."""
        self.scene()
        return self._numbers

    # --- For browsers -------------------------------------------------------------------------------

    def reply(self, query: Mapping[str, str], headers: Mapping[bytes, bytes]) -> Reply:
        heard = headers.get(_LAST, b"").decode("latin-1") or query.get("since", "")
        return Reply(_STREAM, self._pieces(heard, query.get("level", "")), headers=(NO_STORE,))

    async def _pieces(self, heard: str, level: str) -> AsyncIterator[bytes]:
        """``level``: how near this browser looks; the others' changes are not sent."""
        self._listening += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        try:
            self.scene()
            last = self._number_of(heard)
            yield b"retry: 1000\n\n" + self._message(last, level)
            last = self._number
            while not self._closed:
                await self._news.wait()
                if not self._closed:
                    yield self._message(last, level)
                    last = self._number
        finally:
            self._listening -= 1

    def close(self) -> None:
        self._closed = True
        self._news.set()
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        """Looks while anybody listens."""
        loop = asyncio.get_running_loop()
        due = loop.time() + TICK_SECONDS
        while self._listening and not self._closed:
            await asyncio.sleep(max(0.0, due - loop.time()))
            due = max(due + TICK_SECONDS, loop.time())
            self._tick()
            news, self._news = self._news, asyncio.Event()
            news.set()

    # --- Ticks --------------------------------------------------------------------------------------

    def _tick(self) -> Scene:
        before, scene = self._scene, self._seeing.scene()
        if before is None or before.generation != scene.generation:
            self._epoch = secrets.token_hex(4)  # other places have these numbers now
            self._ticks.clear()
            self._numbers = {box.id: number for number, box in enumerate(self._seeing.boxes())}
            before = None
        self._scene = scene
        self._number += 1
        self._ticks.append(
            Tick(
                self._number,
                scene.at,
                self._facts,
                {state.value: n for state, n in scene.counts.items()},
                self._changed(before, scene),
            )
        )
        self._said.clear()
        return scene

    def _changed(self, before: Scene | None, now: Scene) -> dict[str, Numbers]:
        nodes = self._differing(None if before is None else before.nodes, now.nodes, _node)
        return {
            "gpus": self._differing(None if before is None else before.gpus, now.gpus, _gpu)
            | {number: shown for number, shown in nodes.items() if not any(shown[0])},  # drawn by their cpus
            "nodes": nodes,
            "racks": self._differing(None if before is None else before.racks, now.racks, _tally),
        }

    def _differing(self, before: Mapping[str, Any] | None, now: Mapping[str, Any], shown: Any) -> Numbers:
        """Most things are the very same object as the second before."""
        known = {} if before is None else before
        numbers = self._numbers
        return {
            numbers[key]: shown(one)
            for key, one in now.items()
            if (was := known.get(key)) is not one and was != one and key in numbers
        }

    def _number_of(self, heard: str) -> int | None:
        """The last tick that was heard, if it was one of these."""
        epoch, _, number = heard.partition("-")
        if epoch != self._epoch or not number.isdecimal() or len(number) > 18:
            return None
        first = self._ticks[0].number - 1
        return int(number) if first <= int(number) <= self._number else None

    def _message(self, last: int | None, level: str) -> bytes:
        key = (-1 if last is None else last, level)
        said = self._said.get(key)
        if said is None:
            said = self._said[key] = self._made(last, level)
        return said

    def _made(self, last: int | None, level: str) -> bytes:
        newest = self._ticks[-1]
        changes: Numbers = {}
        if last is None:
            changes = self._everything(level)
        else:
            for tick in self._ticks:
                if tick.number > last:
                    changes.update(tick.levels.get(level, {}))
        body: dict[str, Any] = {
            "at": newest.at,
            "facts": newest.facts,
            "counts": newest.counts,
            "changes": changes,
        }
        if level:
            assert self._scene is not None
            body["sentence"] = self._scene.sentence
        kind = b"all" if last is None else b"tick"
        mark = f"{self._epoch}-{newest.number}".encode()
        return b"id: " + mark + b"\nevent: " + kind + b"\ndata: " + _encode(body) + b"\n\n"

    def _everything(self, level: str) -> Numbers:
        assert self._scene is not None
        return self._changed(None, self._scene).get(level, {})


def _gpu(now: GpuNow) -> list[Any]:
    """State, use in percent or -1, whether nobody defends it, and of each job: its id, owner and effort."""
    holders = [[one.id, one.owner, one.effort or ""] for one in now.holders]
    return [_STATES[now.state], _percent(now.share), int(now.undefended), *holders]


def _node(now: NodeNow) -> list[Any]:
    """As its GPUs, or by its cpus if it has none: what is held of them, and what of all is used."""
    held = round(100 * now.cpus_held_milli / now.cpus_milli) if now.cpus_milli else -1
    return [*_tally(now.tally), _STATES[now.state], held, _percent(now.cpu_share)]


def _tally(now: Tally) -> list[Any]:
    """How many are in each state, and the use of those that are held."""
    return [list(now.counts), _percent(now.share), now.undefended]


def _percent(share: float | None) -> int:
    return -1 if share is None else round(share * 100)
