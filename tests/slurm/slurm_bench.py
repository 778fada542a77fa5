"""The Slurm engine on the bench of the conformance suite, and what tests of it share."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from slurm_cluster import Cluster

from muster.engines.slurm.engine import SlurmEngine
from muster.engines.slurm.settings import SlurmSettings
from muster.home import Home
from muster.model.events import Event, Exited, Seat, Seated, Started, Vacated
from muster.model.job import Gang, Job, JobId, Part, Shape
from muster.model.plan import Start
from muster.model.run import Run

Fact = TypeVar("Fact", bound=Event)

PATIENCE_SECONDS = 150.0  # several clusters share a few cores with whatever else runs there
SMALL = Shape(cpus_milli=1000)

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


class SlurmLab:
    """An engine with a home of its own on a cluster, and a way to run things in it."""

    def __init__(
        self, cluster: Cluster, settings: SlurmSettings | None = None, *, limit_seconds: float = 30.0
    ) -> None:
        self.cluster, self._limit_seconds = cluster, limit_seconds
        self.home = Home(Path(tempfile.mkdtemp(prefix="muster-")))
        self.home.path.chmod(0o755)
        base = settings or SlurmSettings(mode="place", soon_seconds=5.0)
        self.settings = msgspec.structs.replace(base, conf=cluster.conf)
        self.jobs: dict[JobId, Job] = {}
        self.environment = {"PATH": os.environ["PATH"], "GREETING": "hello"}
        self.facts: list[Event] = []
        self.engine = self.make()

    def make(self) -> SlurmEngine:
        """One that nobody has told of any nodes: it finds them."""
        engine = SlurmEngine(
            self.home,
            self._find,
            lambda _: self.environment,
            self.settings,
            limit_seconds=self._limit_seconds,
        )
        engine.knows((), ())
        return engine

    def _find(self, job_id: JobId) -> Job:
        return self.jobs[job_id]

    def close(self) -> None:
        self.engine.close()
        shutil.rmtree(self.home.path, ignore_errors=True)

    # --- Running things ---

    def job(self, name: str, script: str, *, shape: Shape = SMALL, parts: int = 1, **more: Any) -> Job:
        run = more.pop("run", Run(argv=("sh", "-c", script), cwd="/", grace_seconds=2.0))
        job = Job(name, Gang((Part(shape, parts),)), self.engine.now(), run=run, **more)
        self.jobs[name] = job
        return job

    def start(self, job: Job, *nodes: str, attempt: int = 1) -> None:
        """On these nodes, or where Slurm likes."""
        shape = job.gang.parts[0].shape
        devices = tuple(range(shape.gpus))
        self.engine.act(
            Start(job.id, attempt, tuple(Seat(n, shape, devices, 1000 if devices else 0) for n in nodes))
        )

    def wait(self, kind: type[Fact], job: Job, attempt: int = 1) -> Fact:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            for fact in self.facts:
                if isinstance(fact, kind) and (fact.job, fact.attempt) == (job.id, attempt):  # type: ignore[attr-defined]
                    return fact
            self.facts += self.engine.observe(self.engine.now() + 0.5)
        raise AssertionError(f"{kind.__name__} of {job.id} did not come; what did: {self.facts}")

    def exited(self, job: Job, attempt: int = 1) -> Exited:
        return self.wait(Exited, job, attempt)

    def started(self, job: Job, attempt: int = 1) -> Started:
        return self.wait(Started, job, attempt)

    def vacated(self, job: Job, attempt: int = 1) -> Vacated:
        return self.wait(Vacated, job, attempt)

    def seats(self, job: Job, attempt: int = 1) -> list[str]:
        return [seat.node for seat in self.wait(Seated, job, attempt).seats]

    def log(self, job: Job, attempt: int = 1, part: str = "") -> str:
        return (self.home.logs / f"{job.id}.{attempt}{part}.log").read_text()


def until(true: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


class SlurmBench(SlurmLab):
    """A bench for the conformance suite: jobs are shell scripts that sleep, and count what they did."""

    beat_seconds = 1.0

    def submit(self, job: Job, *, runs_seconds: float, exit_code: int = 0, stubborn: bool = False) -> None:
        on_term = "" if stubborn else "echo $done >done; exit 143" if job.checkpoint else "exit 143"
        script = _WORKER.format(
            on_term=on_term,
            steps=max(1, round(runs_seconds / self.beat_seconds)),
            step_seconds=self.beat_seconds,
            exit_code=exit_code,
        )
        run = Run(argv=("sh", "-c", script), cwd="/", grace_seconds=3 * self.beat_seconds)
        self.jobs[job.id] = msgspec.structs.replace(job, run=run)

    def lose(self, node: str) -> None:
        self.cluster.lose_node(node)

    def restore(self, node: str) -> None:
        self.cluster.start_node(node)
