"""What a job executes, and the terms under which it does."""

from typing import Literal

import msgspec

from muster.model.units import MIB

GRACE_SECONDS = 30.0
LOG_BYTES = 256 * MIB


class Notice(msgspec.Struct, frozen=True):
    """A signal sent some time before the job is told to end; at once, if nobody could foresee that."""

    signal: int
    before_seconds: float


How = Literal["auto", "report", "json-lines", "pattern", "tensorboard", "mlflow"]


class Metrics(msgspec.Struct, frozen=True):
    """Where a job tells how it is doing. What it says with ``muster.report`` counts in any case."""

    how: How = "auto"  # lines of JSON in its output
    pattern: str = ""  # a template of its lines
    path: str = ""  # of the folder with TensorBoard's event files, absolute
    url: str = ""  # of an MLflow server


class Run(msgspec.Struct, frozen=True, cache_hash=True):
    """A command, or a script with arguments; whose it is, where it runs, and how it is told to end."""

    argv: tuple[str, ...] = ()  # with a script: its arguments
    script: str | None = None  # the text, run by the interpreter that its first line names
    cwd: str = "/"
    environment: str = ""  # the key under which the environment of the submission is kept
    user: str = ""  # the system user whose processes these are; "": Muster's own
    umask: int = 0o022
    output: str | None = None  # where the owner wants the log, besides the one that Muster keeps
    log_bytes: int = LOG_BYTES  # what is written beyond is dropped, and the log says so
    pids: int | None = None  # the most processes and threads at once
    cpu_cap: bool = False  # no more cpu than asked, even while others leave it idle
    notice: Notice | None = None
    grace_seconds: float = GRACE_SECONDS  # between SIGTERM and SIGKILL
