"""Real processes to be read, and a library in place of NVIDIA's."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from muster.engines.local import cgroups, processes
from muster.engines.local.cgroups import Cgroups, Group, Limits, own_folders
from muster.model.units import GIB
from muster.model.usage import Reading
from muster.monitor.meters import Attended, Meters, PartSeen, Readings

TICKS_SECONDS = 0.05  # what rounding and the worker's own loop may come to
_LIMITS = Limits(cpus_milli=1000, memory_bytes=GIB, pids=100)
_FOLDER = Path(__file__).parent / "nvml"
_PATIENCE_SECONDS = 30.0


def until(is_so: Callable[[], object]) -> None:
    """Wait for it; a test that waits in vain fails."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


# --- Processes ------------------------------------------------------------------------------------


class Worker:
    """A Python process that does what it is told, and says when it is done."""

    _LOOP = "import os, sys, time\nfor line in sys.stdin:\n    exec(eval(line))\n    print(flush=True)\n"

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._LOOP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env=None if environment is None else {**os.environ, **environment},
        )
        self.does("held = []")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def started(self) -> int:
        process = processes.look(self.pid)
        assert process is not None
        return process.started

    @property
    def part(self) -> PartSeen:
        return PartSeen(self.pid, self.started)

    def does(self, code: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(repr(code).encode() + b"\n")
        self._process.stdin.flush()
        self._process.stdout.readline()

    def end(self) -> None:
        """And its children; those that have left its session must be ended by whoever made them."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(BrokenPipeError), self._process:
            self._process.wait()


@contextlib.contextmanager
def worker(environment: dict[str, str] | None = None) -> Iterator[Worker]:
    working = Worker(environment)
    try:
        yield working
    finally:
        working.end()


@contextlib.contextmanager
def grouped(found: Cgroups, limits: Limits) -> Iterator[tuple[Worker, Group]]:
    """A process in a group of its own."""
    group = found.make(f"{os.getpid()}.1.0", limits)
    assert group is not None
    with found.inside(group):
        working = Worker()
    group.limit(limits)
    group.settle_in(working.pid)
    try:
        yield working, group
    finally:
        working.end()
        until(lambda: group.kill() or group.remove())


@contextlib.contextmanager
def found_groups() -> Iterator[Cgroups]:
    found = cgroups.find(f"meters-{os.getpid()}")
    try:
        yield found
    finally:
        found.close()


# --- Parts, in groups and without -----------------------------------------------------------------


def in_group(working: Worker, folders: Mapping[str, str], version: int) -> PartSeen:
    return msgspec.structs.replace(working.part, group=folders, version=version)


@contextlib.contextmanager
def v1() -> Iterator[tuple[Worker, PartSeen]]:
    with found_groups() as found:
        if found.version != 1:
            pytest.skip("groups of version 1 can't be made here")
        with grouped(found, _LIMITS) as (working, group):
            yield working, in_group(working, group.folders, 1)


@contextlib.contextmanager
def v2() -> Iterator[tuple[Worker, PartSeen]]:
    """In a tree that may have no controllers: cpu time is told of every group."""
    own = own_folders(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    if "" not in own or not os.access(own[""], os.W_OK):
        pytest.skip("there is no tree of version 2 that we may write to")
    base = f"{own['']}/muster-meters-{os.getpid()}"
    os.mkdir(base)
    found = Cgroups(2, {"pids": base}, {"pids": own[""]})
    try:
        with grouped(found, Limits()) as (working, group):
            yield working, in_group(working, group.folders, 2)
    finally:
        found.close()


@contextlib.contextmanager
def no_group() -> Iterator[tuple[Worker, PartSeen]]:
    with worker() as working:
        yield working, working.part


def read(meters: Meters, *seen: PartSeen) -> Reading:
    return meters.read([Attended("1", 1, seen)]).readings[0]


def used(before: Reading, after: Reading) -> float:
    """Seconds of cpu between two readings."""
    assert before.cpu_seconds is not None
    assert after.cpu_seconds is not None
    return after.cpu_seconds - before.cpu_seconds


# --- What they do ---------------------------------------------------------------------------------


def burn(seconds: float) -> str:
    return f"end = time.process_time() + {seconds}\nwhile time.process_time() < end: pass\n"


def in_child(code: str) -> str:
    """In a child that is waited for."""
    return f"pid = os.fork()\nif not pid:\n{indented(code)}    os._exit(0)\nos.waitpid(pid, 0)"


def as_daemon(code: str, told: Path) -> str:
    """In a process that leaves its session and its parent; when it is done, it tells its number."""
    tell = f"open('{told}.new', 'w').write(str(os.getpid()))\nos.rename('{told}.new', '{told}')\n"
    return in_child("os.setsid()\nif os.fork(): os._exit(0)\n" + code + tell + "time.sleep(60)\n")


def indented(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.splitlines())


# --- GPUs -----------------------------------------------------------------------------------------


def compiler() -> str | None:
    return shutil.which("cc") or shutil.which("gcc")


def build(folder: Path, *options: str) -> Path:
    """The library, in this folder, under the name that it is looked for."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [compiler() or "cc", "-shared", "-fPIC", *options]
    subprocess.run([*command, "-o", folder / "libnvidia-ml.so.1", _FOLDER / "fake_nvml.c"], check=True)
    return folder


class Driver:
    """A machine with GPUs, written down as ``fake_nvml.c`` says, and a process that reads its meters."""

    def __init__(self, library: Path, folder: Path, patience_seconds: float = 20.0) -> None:
        self._state = folder / "gpus"
        self.has("")
        self.environment = {**os.environ, "LD_LIBRARY_PATH": str(library), "FAKE_NVML": str(self._state)}
        self._reader = subprocess.Popen(
            [sys.executable, _FOLDER / "look.py", folder, str(patience_seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment,
        )
        self.silent: list[str] = []

    def has(self, text: str) -> None:
        """Put in place in one go: it is read at any moment."""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        new = self._state.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in lines))
        new.rename(self._state)

    def read(self, attended: Sequence[Attended] = ()) -> Readings:
        assert self._reader.stdin is not None
        assert self._reader.stdout is not None
        self._reader.stdin.write(msgspec.json.encode(attended) + b"\n")
        self._reader.stdin.flush()
        readings, self.silent = msgspec.json.decode(
            self._reader.stdout.readline(), type=tuple[Readings, list[str]]
        )
        return readings

    def close(self) -> None:
        with self._reader:
            self._reader.kill()
