"""The local engine on the bench of the conformance suite, and what tests of it share."""

import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from muster.engines.local import processes
from muster.engines.local.cgroups import own_folders
from muster.engines.local.engine import LocalEngine
from muster.home import Home
from muster.model.events import Event, Exited, Resumed, Seat, Started, StoodDown, Suspended, Vacated
from muster.model.job import Gang, Job, JobId, Part, Shape
from muster.model.plan import Start
from muster.model.run import Run

Fact = TypeVar("Fact", bound=Event)

PATIENCE_SECONDS = 15.0

# Works for so many beats, and keeps count of what it has done when it is told to leave.
_WORKER = """
cd "$MUSTER_CHECKPOINT_DIR" 2>/dev/null
trap '{on_term}' TERM
done=0
test -f done && done=$(cat done)
while test $done -lt {steps}; do
    sleep {step_seconds} & wait $!
    done=$((done + 1))
done
exit {exit_code}
"""


class LocalLab:
    """An engine with a home of its own, and a way to run things in it."""

    def __init__(self, *, cgroups: bool = True, home: Path | None = None) -> None:
        self.home = Home(home or Path(tempfile.mkdtemp(prefix="muster-")))
        self.home.path.chmod(0o755)
        self.jobs: dict[JobId, Job] = {}
        self.environment = {"PATH": os.environ["PATH"], "GREETING": "hello"}
        self.cgroups = cgroups
        self.facts: list[Event] = []
        self.engine = self.connect()

    def connect(self) -> LocalEngine:
        """An engine such as a server would have; the one before is as if it were killed."""
        self.engine = LocalEngine(
            self.home, self.jobs.__getitem__, lambda key: dict(self.environment), cgroups=self.cgroups
        )
        return self.engine

    def add(self, name: str, *argv: str, shape: Shape | None = None, parts: int = 1, **terms: object) -> Job:
        """A job; ``terms`` are fields of its Run or of the Job."""
        own = {k: terms.pop(k) for k in list(terms) if k in Job.__struct_fields__}
        run = msgspec.structs.replace(Run(argv=argv, cwd="/tmp", grace_seconds=0.5), **terms)
        gang = Gang((Part(shape or Shape(cpus_milli=100), parts),))
        job = msgspec.structs.replace(Job(name, gang, 0.0, run=run), **own)
        self.jobs[name] = job
        return job

    def reconnect(self) -> None:
        """The server goes, another comes."""
        self.engine.close()
        self.facts.clear()
        self.connect()

    def seat(self, job: Job) -> Seat:
        return Seat(self.engine.nodes()[0].name, job.gang.parts[0].shape)

    def start(self, job: Job, attempt: int = 1, behind: Job | None = None) -> None:
        ahead = None if behind is None else (behind.id, 1)
        self.engine.act(Start(job.id, attempt, (self.seat(job),) * job.gang.size, behind=ahead))

    def begin(self, name: str, *argv: str, **terms: object) -> Job:
        job = self.add(name, *argv, **terms)  # type: ignore[arg-type]
        self.start(job)
        self.wait(Started, job)
        return job

    def sh(self, name: str, script: str, **terms: object) -> Job:
        return self.begin(name, "sh", "-c", script, **terms)

    def run(self, name: str, *argv: str, **terms: object) -> Exited:
        job = self.add(name, *argv, **terms)  # type: ignore[arg-type]
        self.start(job)
        return self.wait(Exited, job)

    def wait(self, kind: type[Fact], job: Job, attempt: int = 1) -> Fact:
        found: list[Fact] = []

        def happened() -> bool:
            self.facts += self.engine.observe(self.engine.now() + 0.05)
            found.extend(f for f in self.facts if isinstance(f, kind) and _key(f) == (job.id, attempt))
            return bool(found)

        until(happened, f"{kind.__name__} of {job.id}; what was told: {self.facts}")
        return found[0]

    def folder(self, name: str) -> Path:
        return self.home.logs / name

    def log(self, name: str, which: str = "1") -> str:
        """What an attempt wrote, or a part of it: ``1.0``."""
        return self.log_path(name, which).read_text(errors="replace")

    def log_path(self, name: str, which: str = "1") -> Path:
        return self.home.logs / f"{name}.{which}.log"

    def group_base(self, controller: str) -> Path:
        """Where the groups of jobs are, of this controller."""
        folders = own_folders(*(Path(f"/proc/self/{name}").read_text() for name in ("mountinfo", "cgroup")))
        tag = zlib.crc32(os.fsencode(self.home.path.resolve()))
        return Path(folders[controller]) / f"muster-{tag:08x}"

    def pids_group(self, name: str) -> str:
        return str(self.group_base("pids") / f"{name}.1.0")

    def close(self) -> None:
        self.engine.close(end_jobs=True)
        shutil.rmtree(self.home.path)


def _key(fact: Event) -> tuple[str, int] | None:
    if isinstance(fact, Started | StoodDown | Exited | Vacated | Suspended | Resumed):
        return fact.job, fact.attempt
    return None


def until(true: Callable[[], bool], what: str) -> None:
    """Wait for it, but not for ever."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)


def needs(lab: LocalLab, controller: str) -> None:
    if controller not in lab.engine.means:
        pytest.skip(f"there is no {controller} controller here that we may use")


def lives(pid: int) -> bool:
    process = processes.look(pid)
    return process is not None and process.state != "Z"


def pid_in(path: Path) -> int:
    until(lambda: path.exists() and path.read_text().strip() != "", f"{path}")
    return int(path.read_text())


class LocalBench(LocalLab):
    """A bench for the conformance suite: jobs are shell scripts that sleep, and count what they did."""

    beat_seconds = 0.07

    def submit(self, job: Job, *, runs_seconds: float, exit_code: int = 0, stubborn: bool = False) -> None:
        on_term = "" if stubborn else "echo $done >done; exit 143" if job.checkpoint else "exit 143"
        step_seconds = self.beat_seconds
        script = _WORKER.format(
            on_term=on_term,
            steps=max(1, round(runs_seconds / step_seconds)),
            step_seconds=step_seconds,
            exit_code=exit_code,
        )
        run = Run(argv=("sh", "-c", script), cwd="/", grace_seconds=3 * self.beat_seconds)
        self.jobs[job.id] = msgspec.structs.replace(job, run=run)
