"""Processes as /proc shows them: who they are, whose children, and what they hold.

A process is named by its id and the time it started, since ids are used again.
"""

import contextlib
import os
import signal as signals
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_PR_SET_CHILD_SUBREAPER = 36
_LOOKS = 100  # at who does not stay where it is
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Process(NamedTuple):
    """A line of /proc/PID/stat, as far as it matters here."""

    pid: int
    state: str
    parent: int
    group: int
    session: int
    started: int  # ticks since the machine was booted
    resident_bytes: int


def parse_stat(text: str) -> Process:
    """The command may hold anything, brackets too: so what follows it is counted from the last one."""
    pid, _, rest = text.partition(" (")
    fields = rest.rpartition(")")[2].split()
    parent, group, session = map(int, fields[1:4])
    return Process(
        int(pid), fields[0], parent, group, session, int(fields[19]), int(fields[21]) * _PAGE_BYTES
    )


def look(pid: int) -> Process | None:
    """The process, unless it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return parse_stat(file.read())
    except (FileNotFoundError, ProcessLookupError):
        return None


def everybody() -> Iterator[Process]:
    """All that live. Those that have ended and are not waited for yet hold nothing."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = look(int(name))
            if process is not None and process.state != "Z":
                yield process


def tree(roots: Iterable[int], mark: tuple[bytes, ...]) -> list[Process]:
    """The sessions and descendants of these, and whoever carries the mark in its environment.

    The mark finds those that have left the session and whose parent is gone, as a daemon does.
    """
    roots = set(roots)
    found: dict[int, Process] = {}
    children: dict[int, list[Process]] = {}
    for process in everybody():
        children.setdefault(process.parent, []).append(process)
        if process.pid in roots or process.session in roots or _carries(process.pid, mark):
            found[process.pid] = process
    unvisited = list(found)
    while unvisited:
        for child in children.get(unvisited.pop(), ()):
            if child.pid not in found:
                found[child.pid] = child
                unvisited.append(child.pid)
    return list(found.values())


def _carries(pid: int, mark: tuple[bytes, ...]) -> bool:
    return _all_in(mark, _environ(pid))


def _all_in(mark: tuple[bytes, ...], environ: bytes) -> bool:
    variables = environ.split(b"\0")
    return all(variable in variables for variable in mark)


def _environ(pid: int) -> bytes:
    """Empty of one that has ended, or that is not ours to look at."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


def send(pid: int, signal: int) -> None:
    """A signal to a process, if it is still there."""
    try:
        os.kill(pid, signal)
    except (ProcessLookupError, PermissionError):
        return


def kill_all(pids: Iterable[int]) -> None:
    for pid in pids:
        send(pid, signals.SIGKILL)


def kill_tree(found: Iterable[Process]) -> None:
    """By groups first, each of them at once: who forks without end does not outrun that."""
    found = list(found)
    for group in {process.group for process in found}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signals.SIGKILL)
    kill_all(process.pid for process in found)


# --- Orphans --------------------------------------------------------------------------------------


def orphan(mark: tuple[bytes, ...]) -> int | None:
    """One of our children that carries the mark; 0: there may be one. None: there is none.

    Who forks and ends, forks and ends, is hardly found in /proc: by the time that all have been read it is
    another. But it is always a child of ours. So if one was gone when it was looked at, we look again.
    """
    dead: set[int] = set()
    for _ in range(_LOOKS):
        steady = True
        for pid in (own_children() or set()) - dead:
            environ = _environ(pid)
            if environ and _all_in(mark, environ):
                return pid
            if not environ:
                dead.add(pid)
                steady = False
        if steady:
            return None
    return 0


def run_after(mark: tuple[bytes, ...]) -> None:
    """Kill those of our children that carry the mark, one after the other, for a while."""
    for _ in range(_LOOKS):
        found = orphan(mark)
        if found is None:
            return
        if found:
            send(found, signals.SIGKILL)


def adopt_orphans() -> None:
    """Let those whose parents end become our children, not init's: so we see who is left of a tree."""
    import ctypes  # noqa: PLC0415 - large, and only needed where there are no groups

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def own_children() -> set[int] | None:
    """None: this kernel does not tell."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return set(map(int, file.read().split()))
    except OSError:
        return None


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
