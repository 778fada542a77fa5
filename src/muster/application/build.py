"""A request becomes a job, or an array of jobs: options over file over defaults."""

import math
import os.path
import re

import msgspec

from muster.application.asked import Asked, laid_over
from muster.application.document import read_document
from muster.application.many import Sweep
from muster.application.names import MOST_LETTERS, parse_name
from muster.application.options import read_options
from muster.application.request import Request, check_request
from muster.application.sbatch import read_sbatch
from muster.application.yaml_text import Written, read_yaml
from muster.model.charter import Charter
from muster.model.errors import BadInput
from muster.model.job import After, Dependency, Gang, Job, Part, Priority, Shape, Together
from muster.model.run import GRACE_SECONDS, LOG_BYTES, Metrics, Run
from muster.model.units import MILLI
from muster.steward.exits import check_sense, exits_of

DEFAULT_CPUS_MILLI = MILLI
_SHELL = ("/bin/sh", "-c")
_PROGRAM = re.compile(r".+\.(py|sh|R|jl|pl|js|rb)")
_PATTERN = re.compile(r"%(.)")


class Built(msgspec.Struct, frozen=True):
    """A job; with ``indices`` the template of an array. And what of the request is passed over."""

    job: Job
    indices: tuple[int, ...] = ()
    most_at_once: int | None = None
    sweep: Sweep = ()
    warnings: tuple[str, ...] = ()
    right_size: bool = False  # it is to ask for what the history of the same work advises


class _Source(msgspec.Struct, frozen=True):
    """What was read of a file: what it asks for and runs."""

    asked: Asked
    argv: tuple[str, ...]
    script: str | None
    title: str  # the name of a job that was given none
    warnings: tuple[str, ...] = ()


def build(
    request: Request, *, job_id: str, owner: str, team: str, user: str, environment_key: str, now: float
) -> Built:
    """The job that a request asks for; ``BadInput`` says in a sentence what is wrong with it."""
    check_request(request)
    source = _source(request, now)
    asked = laid_over(read_options(request.options, now), source.asked)
    indices = _indices(asked)
    name = asked.name or source.title
    run = _run(request, source, asked, user, environment_key)
    job = Job(
        id=job_id,
        gang=_gang(asked),
        submitted_at=now,
        name=name,
        owner=owner,
        team=asked.team or team,
        priority=Priority.NORMAL if asked.priority is None else asked.priority,
        time_limit_seconds=_finite(asked.time_limit_seconds),
        begin_at=asked.begin_at,
        after=_dependencies(asked),
        checkpoint=asked.checkpoint,
        charter=charter_of(asked, owner, now),
        held=asked.held or False,
        effort=asked.effort,
        retries=asked.retries or 0,
        metrics=_metrics(asked, run),
        run=msgspec.structs.replace(run, output=_output(run, job_id, name, owner, many=bool(indices))),
    )
    most_at_once = asked.array.most_at_once if asked.array else None
    doubts = check_sense(exits_of(job.charter), job.time_limit_seconds)
    warnings = (*source.warnings, *doubts)
    return Built(job, indices, most_at_once, asked.sweep or (), warnings, asked.right_size or False)


def _source(request: Request, now: float) -> _Source:
    if request.script is not None:
        batch = read_sbatch(request.script, request.script_name, now)
        title = _title(os.path.basename(request.script_name))
        return _Source(batch.asked, request.args, request.script, title, batch.warnings)
    if request.yaml is None and request.application is None:
        command = request.command or ()
        return _Source(Asked(), command, None, _title_of(command))
    if request.yaml is not None:
        written, name = read_yaml(request.yaml, request.yaml_name), request.yaml_name
    else:
        written, name = Written(request.application, {}), "the application"
    described = read_document(written, name, now)
    argv, script = _to_run(described.run if request.command is None else request.command, name)
    return _Source(described.asked, (*argv, *request.args), script, _title_of(argv), described.warnings)


def _to_run(run: str | tuple[str, ...] | None, name: str) -> tuple[tuple[str, ...], str | None]:
    """A list is a command; a text a line for the shell, or a script if its first line names who reads it."""
    if not run or (isinstance(run, str) and not run.strip()):
        raise BadInput(f"{name}: nothing to run; add a line like 'run: python train.py'")
    words = (run,) if isinstance(run, str) else run
    if any("\0" in word for word in words) or not words[0].strip():
        raise BadInput(f"{name}: run can't be started: it holds what no command line can")
    if isinstance(run, tuple):
        return run, None
    return ((), run) if run.startswith("#!") else ((*_SHELL, run), None)


def _title_of(argv: tuple[str, ...]) -> str:
    """The program that a command runs: the script, if an interpreter is given one."""
    words = argv[2].split() if argv[:2] == _SHELL and len(argv) == 3 else list(argv)
    if not words:
        return "script"
    program = next((word for word in words[1:] if _PROGRAM.fullmatch(word)), words[0])
    return _title(os.path.basename(program))


def _title(text: str) -> str:
    """A name made of anything."""
    kept = "".join(letter if letter.isprintable() and letter != "\\" else "-" for letter in text)
    kept = kept.strip()[:MOST_LETTERS].strip()
    return "job" if kept in ("", ".", "..") else parse_name(kept)


def _gang(asked: Asked) -> Gang:
    gpus, gpu_milli = _gpus(asked)
    shape = Shape(
        cpus_milli=asked.cpus_milli or DEFAULT_CPUS_MILLI,
        memory_bytes=asked.memory_bytes or 0,
        gpus=gpus,
        gpu_milli=gpu_milli,
        gpu_memory_bytes=asked.gpu_memory_bytes or 0 if gpus else 0,
        gpu_models=asked.gpu_models or () if gpus else (),
        labels=asked.labels or (),
        disk_bytes=asked.disk_bytes or 0,
    )
    return Gang((Part(shape, asked.parts or 1),), asked.together or Together.ANYWHERE)


def _gpus(asked: Asked) -> tuple[int, int]:
    """How many, and the share of each. Memory alone asks for that much of one GPU; a model alone for one."""
    if asked.gpus_milli is None:
        if asked.gpu_memory_bytes is not None:
            return 1, 0
        return (1 if asked.gpu_models else 0), MILLI
    if 0 < asked.gpus_milli < MILLI:
        return 1, asked.gpus_milli
    return asked.gpus_milli // MILLI, MILLI


def _dependencies(asked: Asked) -> tuple[Dependency, ...]:
    said = ((asked.after_ok, After.OK), (asked.after_any, After.ANY), (asked.after_not_ok, After.NOT_OK))
    return tuple(dict.fromkeys(Dependency(job, after) for jobs, after in said for job in jobs or ()))


def charter_of(asked: Asked, owner: str | None, now: float) -> Charter:
    if asked.until is not None and asked.until <= now:
        raise BadInput("until: that date has passed; write one that is still to come")
    return Charter(
        owner=asked.owner or owner,
        purpose=asked.purpose,
        success=asked.success or (),
        failure=asked.failure or (),
        budget=asked.budget,
        progress=asked.progress or (),
        until=asked.until,
    )


def _indices(asked: Asked) -> tuple[int, ...]:
    """Of an array as written; of a sweep one for each combination; of a single job none."""
    written, sweep = asked.array, asked.sweep
    if written and written.values and sweep:
        raise BadInput(
            "an array and a sweep can't be had at once; with parameters, --array %5 says how many at once"
        )
    if sweep:
        return tuple(range(1, 1 + math.prod(len(values) for _, values in sweep)))
    if written and not written.values:
        raise BadInput("the array has no members; write it like 1-100%5")
    return written.values if written else ()


def _run(request: Request, source: _Source, asked: Asked, user: str, environment_key: str) -> Run:
    cwd = os.path.normpath(os.path.join(request.cwd, asked.cwd or ""))
    output = None if asked.output is None else os.path.normpath(os.path.join(cwd, asked.output))
    return Run(
        argv=source.argv,
        script=source.script,
        cwd=cwd,
        environment=environment_key,
        user=user,
        umask=request.umask,
        output=output,
        log_bytes=asked.log_bytes or LOG_BYTES,
        pids=asked.pids,
        cpu_cap=asked.cpu_cap or False,
        notice=asked.notice,
        grace_seconds=GRACE_SECONDS if asked.grace_seconds is None else asked.grace_seconds,
    )


def _metrics(asked: Asked, run: Run) -> Metrics | None:
    """A folder is meant from where the job runs."""
    said = asked.metrics
    if said is None or not said.path:
        return said
    return msgspec.structs.replace(said, path=os.path.normpath(os.path.join(run.cwd, said.path)))


def _output(run: Run, job_id: str, name: str, owner: str, *, many: bool) -> str | None:
    """Slurm's patterns in a path. Of an array, %j and %a stay: each member has its own."""
    if run.output is None:
        return None
    known = {"A": job_id, "j": job_id, "J": job_id, "x": name, "u": owner, "%": "%"}
    if many:
        known |= {"j": "%j", "J": "%j", "a": "%a", "%": "%%"}
    return _PATTERN.sub(lambda match: _expanded(match[1], known), run.output)


def _expanded(letter: str, known: dict[str, str]) -> str:
    if letter not in known:
        raise BadInput(f"output: %{letter} is not understood; use {', '.join(f'%{key}' for key in known)}")
    return known[letter]


def _finite(seconds: float | None) -> float | None:
    return None if seconds is None or math.isinf(seconds) else seconds
