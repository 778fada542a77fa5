"""What a client sends to submit a job: the words as they were written, and where they were written."""

from typing import Annotated, Any

import msgspec

from muster.model.errors import BadInput

MOST_TEXT_BYTES = 1_000_000
MOST_ARGUMENT_BYTES = 128 * 1024  # as the kernel has it for a single one
MOST_ARGUMENTS = 10_000
MOST_ENVIRONMENT_BYTES = 1_000_000
MOST_AT_ONCE = 10_000  # jobs in one submission


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of ``POST /jobs`` and ``POST /plan``."""

    application: dict[str, Any] | None = None  # keys as in application.yaml
    yaml: str | None = None
    yaml_name: str = "application.yaml"
    script: str | None = None
    script_name: str = "script"
    args: tuple[str, ...] = ()  # of the script
    options: dict[str, Any] = {}
    command: tuple[str, ...] | None = None
    cwd: str = "/"
    environment: dict[str, str] = {}
    umask: int = 0o022
    attended: bool = False  # somebody waits for it at a terminal


class ManyRequests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of ``POST /submissions``. The environment is that of all jobs that bring none."""

    jobs: Annotated[tuple[Request, ...], msgspec.Meta(min_length=1, max_length=MOST_AT_ONCE)]
    environment: dict[str, str] = {}


def check_request(request: Request) -> None:
    """Refuses what no process could be started with, and sources that contradict each other."""
    _check_sources(request)
    _check_arguments((*(request.command or ()), *request.args))
    _check_environment(request.environment)
    _check_text(request.script, request.script_name)
    if not request.cwd.startswith("/") or not request.cwd.isprintable() or len(request.cwd) > 4000:
        raise BadInput("the folder to run in must be an absolute, printable path")
    if not 0 <= request.umask <= 0o777:
        raise BadInput("the umask must be between 0 and 0777")


def _check_sources(request: Request) -> None:
    if request.application is not None and request.yaml is not None:
        raise BadInput("an application is given twice; send it as text or as a value, not both")
    described = request.application is not None or request.yaml is not None
    if request.script is not None and (described or request.command is not None):
        raise BadInput("a script can't be joined with a command or an application file; give one of them")
    if request.command is not None and not request.command:
        raise BadInput("the command is empty; give one, like: muster submit -- python train.py")
    if request.script is None and request.command is None and not described:
        raise BadInput("nothing to run; give a command, a script or an application file")


def _check_arguments(arguments: tuple[str, ...]) -> None:
    if len(arguments) > MOST_ARGUMENTS:
        raise BadInput(f"a command of {len(arguments):,} words is too long; {MOST_ARGUMENTS:,} are the most")
    for argument in arguments:
        if "\0" in argument or not _is_text(argument):
            raise BadInput(f"{argument[:80]!r} can't be an argument: it holds what no command line can")
        if len(argument.encode()) > MOST_ARGUMENT_BYTES:
            raise BadInput(f"an argument of {len(argument):,} letters is too long for any command")
    if arguments and not arguments[0].strip():
        raise BadInput("the command's first word is empty; it should name a program")


def _check_environment(environment: dict[str, str]) -> None:
    """All at once, since there are many and they are nearly always right."""
    names, values = "".join(environment), "".join(environment.values())
    if len(names) + len(values) > MOST_ENVIRONMENT_BYTES:
        raise BadInput("the environment is larger than a megabyte; unset what the job does not need")
    if "" in environment or "=" in names or "\0" in names or "\0" in values or not _is_text(names + values):
        odd = next(name for name, value in environment.items() if not _can_be_set(name, value))
        raise BadInput(f"{odd[:80]!r} can't be a variable of the environment; unset it")


def _can_be_set(name: str, value: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name + value and _is_text(name + value)


def _check_text(script: str | None, name: str) -> None:
    if script is None:
        return
    if not _is_text(script) or "\0" in script:
        raise BadInput(f"{name[:80]!r} is not text; a script is")
    if len(script.encode()) > MOST_TEXT_BYTES:
        raise BadInput(
            f"{name[:80]!r} is larger than a megabyte; a script that long belongs in files of its own"
        )
    if not script.strip():
        raise BadInput(f"{name[:80]!r} is empty; there is nothing to run")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
