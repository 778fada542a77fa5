"""Starting a process: as itself, with nothing of the keeper's but its log.

Whose user is the keeper's is started with ``posix_spawn``: it borrows the keeper's memory until exec and
copies nothing, at half the cost of a fork (see ``cgroups``). The folder and the umask are the keeper's own
for that moment. For another user there are rights to give up first, between fork and exec; then folder,
program and all are looked at with that user's eyes.
"""

import errno
import os
import pwd
import signal
from collections.abc import Callable
from typing import NamedTuple, NoReturn

CANT_EXECUTE, NOT_FOUND = 126, 127  # as shells say it

# What Python ignores, and what the keeper does.
_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGHUP, signal.SIGINT)


class Program(NamedTuple):
    """What to execute, and where."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    cwd: str
    umask: int
    output: str | None  # where a link to the log is wanted


class NotStarted(Exception):
    """It could not be executed: the exit code that says so, and a sentence."""

    def __init__(self, exit_code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class Person(NamedTuple):
    """A user of the system."""

    name: str
    uid: int
    gid: int


def person(user: str) -> Person | None:
    """Whom to become; None if we are already. Refused without the right to."""
    if not user:
        return None
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise NotStarted(CANT_EXECUTE, f"there is no user {user} on this machine") from None
    if entry.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise NotStarted(CANT_EXECUTE, f"only root can start processes of another user, such as {user}")
    return Person(user, entry.pw_uid, entry.pw_gid)


def start(program: Program, someone: Person | None, log: int, log_path: str) -> int:
    """Start it in a session of its own; the process id. ``NotStarted`` if that failed before it ran."""
    if someone is None:
        return _spawn(program, log, log_path)
    pid = os.fork()
    if pid == 0:
        _become_and_execute(program, someone, log, log_path)
    return pid


def _spawn(program: Program, log: int, log_path: str) -> int:
    before = os.umask(program.umask)
    try:
        _enter(program.cwd)
        _link(program.output, log_path)
        return _first_that_spawns(program, log)
    finally:
        os.chdir("/")
        os.umask(before)


def _first_that_spawns(program: Program, log: int) -> int:
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, log, 1),
        (os.POSIX_SPAWN_DUP2, log, 2),
    ]

    def spawn(path: str, argv: list[str]) -> int:
        return os.posix_spawn(
            path,
            argv,
            program.environment,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=_RESTORED,
        )

    return _first_of(program, spawn)


def _become_and_execute(program: Program, someone: Person, log: int, log_path: str) -> NoReturn:
    """In the forked child: never returns, whatever happens."""
    code = CANT_EXECUTE
    try:
        os.setsid()
        null = os.open("/dev/null", os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        signal.set_wakeup_fd(-1)
        for restored in (*_RESTORED, signal.SIGCHLD):
            signal.signal(restored, signal.SIG_DFL)
        os.initgroups(someone.name, someone.gid)
        os.setgid(someone.gid)
        os.setuid(someone.uid)
        os.umask(program.umask)
        _enter(program.cwd)
        _link(program.output, log_path)
        _first_of(program, lambda path, argv: os.execve(path, argv, program.environment))
    except NotStarted as error:
        code = error.exit_code
        os.write(2, f"muster: {error}\n".encode())
    except BaseException as error:
        os.write(2, f"muster: can't execute it: {error}\n".encode())
    finally:
        os._exit(code)


# --- Finding the program --------------------------------------------------------------------------

_LOOK_ON = (errno.ENOENT, errno.ENOTDIR, errno.EACCES)


def _first_of(program: Program, execute: Callable[[str, list[str]], int]) -> int:
    """Execute it from the first place on the job's own PATH where that works."""
    name, *arguments = program.argv
    refused: OSError | None = None
    for path in _places(name, program.environment):
        try:
            return execute(path, [name, *arguments])
        except ValueError as error:
            raise NotStarted(CANT_EXECUTE, f"can't execute {name!r}: {error}") from None
        except OSError as error:
            if error.errno == errno.ENOEXEC:  # a script without a first line
                return execute("/bin/sh", ["sh", path, *arguments])
            if error.errno not in _LOOK_ON:
                raise _not_started(program, error) from None
            refused = _more_telling(refused, error)
    raise _not_started(program, refused)


def _places(name: str, environment: dict[str, str]) -> list[str]:
    if "/" in name:
        return [name]
    paths = [os.path.join(folder, name) for folder in environment.get("PATH", os.defpath).split(":")]
    return [path for path in paths if os.access(path, os.F_OK, effective_ids=True)]


def _more_telling(before: OSError | None, now: OSError) -> OSError:
    """That something was there and could not be executed says more than that elsewhere there was nothing."""
    return before if before is not None and before.errno == errno.EACCES else now


def _not_started(program: Program, error: OSError | None) -> NotStarted:
    missing = error is None or error.errno in (errno.ENOENT, errno.ENOTDIR)
    why = "command not found" if error is None else os.strerror(error.errno or 0)
    return NotStarted(NOT_FOUND if missing else CANT_EXECUTE, f"can't execute {program.argv[0]!r}: {why}")


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except (OSError, ValueError) as error:
        why = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
        raise NotStarted(CANT_EXECUTE, f"can't enter the folder {folder!r}: {why}") from None


def _link(output: str | None, log_path: str) -> None:
    """Where the owner wants the log there is a link to it, in place of what was there before."""
    if output is None:
        return
    beside = f"{output}.{os.getpid()}.muster"
    try:
        os.symlink(log_path, beside)
        os.rename(beside, output)
    except (OSError, ValueError) as error:
        raise NotStarted(CANT_EXECUTE, f"can't write the output {output!r}: {error}") from None
