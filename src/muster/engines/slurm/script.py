"""From an attempt to what ``sbatch`` is given: options, and a script that sets the scene and becomes the job.

What a program finds around it is what it would find on one machine: the variables of its submission and of
its place in a gang, its folder, its log under the same name. The script is a shell's, since it starts on
another machine, where nothing of Muster need be installed; the home is on a file system that they share.
Of a gang, ``srun`` starts the parts (``parts``); a single program takes the script's place, so that signals
reach it.
Of the environment of ``sbatch`` nothing stays. Not to pass it on at all would make Slurm start a login shell
of the user's first, which takes as long as it likes.

The attempt's *mark* is in the comment and in the name: by it a job is found again whose number was lost.
And should two jobs bear one mark after all, the second finds the claim of the first in the folder, and ends.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from muster.engines.base import Key
from muster.engines.local.logs import log_name
from muster.engines.local.orders import filled, output_of, run_of, tracker_of, variables_of
from muster.engines.slurm.client import PASSED_ON
from muster.engines.slurm.components import Component, components_of, why_no_shape
from muster.engines.slurm.parts import bounded, gang
from muster.engines.slurm.settings import SlurmSettings
from muster.engines.slurm.shape import PARTITION
from muster.home import Home
from muster.model.errors import BadInput
from muster.model.events import Seat
from muster.model.job import Job, Shape, Together
from muster.model.node import Node
from muster.model.plan import Start
from muster.model.units import MIB, MINUTE

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NOT_IN_A_NAME = re.compile(r"[^\w.+-]+", re.ASCII)
_NAME_LETTERS = 60
_SLURMS_OWN = ("SLURM_JOB_ID",)
Best = Callable[[Shape, Sequence[Seat], Mapping[str, Node]], str]
"""The partition for parts of a shape, on these seats."""
DOUBLE = 110  # the exit code of a second job under one mark: it has done nothing


class Marks:
    """The names under which this home's attempts are known to Slurm."""

    def __init__(self, home_id: str) -> None:
        self.start = f"muster:{home_id}:"

    def of(self, key: Key) -> str:
        return f"{self.start}{key[0]}.{key[1]}"

    def read(self, comment: str) -> Key | None:
        """The attempt that a comment speaks of; None: of none of ours."""
        if not comment.startswith(self.start):
            return None
        job, dot, attempt = comment[len(self.start) :].rpartition(".")
        return (job, int(attempt)) if dot and attempt.isascii() and attempt.isdecimal() else None

    def name(self, key: Key, job_name: str) -> str:
        """What ``squeue`` shows: the job's own name in front, and nothing that a list could not carry."""
        said = _NOT_IN_A_NAME.sub("-", job_name)[:_NAME_LETTERS].strip("-")
        return f"{said}@{self.of(key)}" if said else self.of(key)


class Handover:
    """All that is needed to make attempts into batch jobs."""

    def __init__(
        self,
        home: Home,
        settings: SlurmSettings,
        marks: Marks,
        environment: Callable[[str], dict[str, str]],
    ) -> None:
        self._home, self._settings, self._marks, self._environment = home, settings, marks, environment

    def options(
        self, job: Job, start: Start, nodes: Mapping[str, Node], partition_of: Best
    ) -> tuple[str, ...]:
        """Of one component after the other, with what all have in common said of each."""
        if (why_not := why_no_shape(job, 0, places=bool(start.seats))) is not None:
            raise BadInput(why_not)
        words: list[str] = []
        for one in components_of(job.gang, start.seats):
            partition = self._settings.partition or partition_of(one.shape, one.seats, nodes)
            words += (":",) if words else ()
            words += (*self._common(job, start, partition), *_asked(job, one, nodes))
        return tuple(words)

    def _common(self, job: Job, start: Start, partition: str) -> Iterator[str]:
        key = (job.id, start.attempt)
        yield from self._settings.options
        yield f"--job-name={self._marks.name(key, job.name)}"
        yield f"--comment={self._marks.of(key)}"
        yield f"--output={self._home.logs}/{log_name(*key, 0, job.gang.size)}"
        yield from ("--open-mode=append", "--export=ALL", "--no-requeue", "--chdir=/")
        chosen = {"partition": partition, "account": self._settings.account, "qos": self._settings.qos}
        yield from (f"--{name}={value}" for name, value in chosen.items() if value)
        if user := run_of(job).user:
            yield f"--uid={user}"

    def script(self, job: Job, start: Start) -> str:
        run, key = run_of(job), (job.id, start.attempt)
        folder = f"{self._home.logs}/{job.id}"
        program = [f"{folder}/{start.attempt}.script"] if run.script is not None else []
        words = [*program, *(filled(argument, job) for argument in run.argv)]
        log = f"{self._home.logs}/{log_name(*key, 0, job.gang.size)}"
        lines = [
            "#!/bin/sh",
            _claimed(f"{folder}/{start.attempt}.claim"),
            "muster_srun=$(command -v srun)",
            *(() if job.gang.size > 1 else bounded(_quoted(log), run.log_bytes)),
            f"unset {' '.join(PASSED_ON)}",
            *self._exports(job, start.attempt),
            f"umask {run.umask:03o}",
            f"cd {_quoted(run.cwd)} || exit 126",
            *_linked(output_of(run, job), log),
            *(gang(job, start.attempt, self._home, words) if job.gang.size > 1 else _alone(words)),
        ]
        return "\n".join(lines) + "\n"

    def _exports(self, job: Job, attempt: int) -> Iterator[str]:
        """Names that a shell can't have are left out: they are other shells' functions."""
        run = run_of(job)
        theirs = self._environment(run.environment)
        ours = variables_of(job, attempt, self._home) | tracker_of(
            job, attempt, self._home, self._environment
        )
        for name in _SLURMS_OWN:
            ours.pop(name, None)
        for name, value in {**theirs, **ours}.items():
            if (_IDENTIFIER.fullmatch(name) and not name.startswith(("SLURM_", "SBATCH_"))) or name in ours:
                yield f"export {name}={_quoted(value)}"


def _quoted(text: str) -> str:
    return shlex.quote(text)


def _claimed(path: str) -> str:
    """Made in one step, or not at all; who finds its own number there is the first, tried again."""
    quoted = _quoted(path)
    return (
        f'(set -C; echo "$SLURM_JOB_ID" >{quoted}) 2>/dev/null || '
        f'[ "$(cat {quoted})" = "$SLURM_JOB_ID" ] || exit {DOUBLE}'
    )


def _linked(output: str | None, log: str) -> Iterator[str]:
    """Where the owner wants the log there is a link to it."""
    if output is not None:
        yield f"ln -sfn -- {_quoted(log)} {_quoted(output)} || exit 126"


def _alone(words: Sequence[str]) -> Iterator[str]:
    yield f"exec {shlex.join(words)}"


# --- What is asked for -----------------------------------------------------------------------------


def _asked(job: Job, one: Component, nodes: Mapping[str, Node]) -> Iterator[str]:
    shape, size = one.shape, job.gang.size
    yield from (f"--ntasks={one.count}", f"--cpus-per-task={one.cpus}")
    if shape.memory_bytes:
        mebibytes = -(-shape.memory_bytes // MIB)
        yield f"--mem={mebibytes}M" if size == 1 else f"--mem-per-cpu={-(-mebibytes // one.cpus)}M"
    if shape.gpus:
        model = _model(shape, one.seats, nodes)
        amount = f"{model}:{shape.gpus}" if model else f"{shape.gpus}"
        yield f"--gres=gpu:{amount}" if size == 1 else f"--gpus-per-task={amount}"
    if shape.disk_bytes:
        yield f"--tmp={-(-shape.disk_bytes // MIB)}M"
    features = [label for label in shape.labels if not label.startswith(PARTITION)]
    if features:
        yield f"--constraint={'&'.join(features)}"
    if job.time_limit_seconds is not None:
        yield f"--time={max(1, -(-int(job.time_limit_seconds) // int(MINUTE)))}"
    if run_of(job).notice is not None:
        notice = run_of(job).notice
        assert notice is not None
        whom = "" if size > 1 else "B:"
        yield f"--signal={whom}{notice.signal}@{int(notice.before_seconds)}"
    yield from _where(one, job.gang.together)


def _model(shape: Shape, seats: Sequence[Seat], nodes: Mapping[str, Node]) -> str:
    """Slurm takes one model, or any: of several, that of the seats."""
    if len(shape.gpu_models) == 1:
        return shape.gpu_models[0]
    if shape.gpu_models and seats and seats[0].devices:
        return nodes[seats[0].node].devices[seats[0].devices[0]].model
    return ""


def _where(one: Component, together: Together) -> Iterator[str]:
    """The nodes that were chosen; or, where none were, how close the parts must be."""
    seats, size = one.seats, one.count
    if seats:
        names = list(dict.fromkeys(seat.node for seat in seats))
        yield from (f"--nodelist={','.join(names)}", f"--nodes={len(names)}")
        most = max(sum(seat.node == name for seat in seats) for name in names)
        if size > 1:
            yield f"--ntasks-per-node={most}"
    elif size == 1 or together is Together.NODE:
        yield "--nodes=1"
    elif together is Together.SPREAD:
        yield from (f"--nodes={size}", "--ntasks-per-node=1")
    elif together in (Together.RACK, Together.SWITCH):
        yield "--switches=1"
