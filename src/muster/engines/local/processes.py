"""Processes as /proc shows them: who they are, whose children, and what they hold.

A process is named by its id and the time it started, since ids are used again.
"""

import os
import signal as signals
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_PR_SET_CHILD_SUBREAPER = 36
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Process(NamedTuple):
    """A line of /proc/PID/stat, as far as it matters here."""

    pid: int
    state: str
    parent: int
    session: int
    started: int  # ticks since the machine was booted
    resident_bytes: int


def parse_stat(text: str) -> Process:
    """The command may hold anything, brackets too: so what follows it is counted from the last one."""
    pid, _, rest = text.partition(" (")
    fields = rest.rpartition(")")[2].split()
    return Process(
        int(pid), fields[0], int(fields[1]), int(fields[3]), int(fields[19]), int(fields[21]) * _PAGE_BYTES
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
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = file.read().split(b"\0")
    except OSError:
        return False
    return all(variable in variables for variable in mark)


def send(pid: int, signal: int) -> None:
    """A signal to a process, if it is still there."""
    try:
        os.kill(pid, signal)
    except (ProcessLookupError, PermissionError):
        return


def kill_all(pids: Iterable[int]) -> None:
    for pid in pids:
        send(pid, signals.SIGKILL)


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
