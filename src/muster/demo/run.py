"""The demonstration as a whole: a home that goes with it, a week, and the real server on top of it."""

import gc
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import msgspec

from muster.demo import logs, story
from muster.demo.footing import SimFooting
from muster.demo.living import Living
from muster.demo.past import Past
from muster.demo.people import configuration
from muster.demo.sites import Site, layout_text, nodes_of, read_site
from muster.demo.week import relive, write_down
from muster.home import Home
from muster.model.events import Outcome
from muster.server.config import read_config
from muster.server.config_values import Address
from muster.server.identity import own_name
from muster.server.serve import Settings, serve
from muster.web.site import Site as Pages

_MEMORY = Path("/dev/shm")  # a folder in memory, where the machine has one
_PREFIX = "muster-demo-"
_FOREIGN = ("gpub001", 0)  # where somebody's process sits that Muster has not started


class Demo(msgspec.Struct, frozen=True):
    """What is asked for."""

    http: Address | None
    site: Site = "delta"
    seed: int = 1
    speed: float = 1.0


class Shown(msgspec.Struct, frozen=True):
    """What is there to see."""

    home: Home
    where: str
    nodes: int
    gpus: int


def demonstrate(demo: Demo, ready: Callable[[Shown], None]) -> None:
    """Run until told to stop; then nothing is left of it. ``ready`` is called once it answers."""
    with _passing_home() as home:
        gc.disable()  # nothing of the week is rubbish, and looking for it takes a tenth of the time
        past = _prepare(home, demo)
        gc.enable()
        small = demo.site == "delta"
        footing = SimFooting(past, demo.speed, _FOREIGN if small else None)
        living: list[Living] = []

        def answers(where: str) -> None:
            assert footing.live is not None
            people = Living(home, footing.live, footing.kind_of, own_name(), demo.seed, demo.speed)
            people.begin()
            living.append(people)
            nodes = footing.live.nodes()
            ready(Shown(home, where, len(nodes), sum(len(node.devices) for node in nodes)))

        try:
            serve(
                home,
                read_config(home.configuration),
                Settings(demo.http),
                answers,
                footing=footing,
                pages=Pages,
            )
        finally:
            for people in living:
                people.end()


def _prepare(home: Home, demo: Demo) -> Past:
    """The week, in a store from which the server starts."""
    now, visitor = float(int(time.time())), own_name()
    home.make()
    home.layout.write_text(layout_text(demo.site), encoding="utf-8")
    nodes = nodes_of(read_site(demo.site), story.UNSEEN)
    gpus = sum(len(node.devices) for node in nodes)
    home.configuration.write_text(configuration(gpus, now, visitor), encoding="utf-8")
    past = relive(nodes, read_config(home.configuration), home, now, demo.seed, visitor)
    write_down(past, f"sqlite:///{home.database}", now)
    _write_logs(past, home, now)
    return past


def _write_logs(past: Past, home: Home, now: float) -> None:
    for job, attempt in past.keys:
        entry, kind, size = past.ledger.entry(job, attempt), past.kind_of(job), past.jobs[job].gang.size
        assert entry is not None
        if entry.ended_at is None:
            done = min(1.0, (now - entry.placed_at) / past.lives[job])
            lines = logs.first_lines(kind, job, done)
        else:
            lines = logs.last_lines(kind, job, failed=entry.outcome is Outcome.FAILED)
        path = logs.path_of(home.logs, job, attempt, size)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@contextmanager
def _passing_home() -> Iterator[Home]:
    """A home in memory, or in a temporary folder, that is removed whatever happens."""
    folder = str(_MEMORY) if _MEMORY.is_dir() else None
    before = signal.signal(signal.SIGTERM, _leave)
    path = tempfile.mkdtemp(prefix=_PREFIX, dir=folder)
    try:
        yield Home(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)
        signal.signal(signal.SIGTERM, before)


def _leave(_: int, __: FrameType | None) -> None:
    raise SystemExit(0)
