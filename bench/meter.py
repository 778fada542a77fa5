"""What does metering cost, and is it true?

Cost: two hundred jobs of real processes, most asleep and some that fork all the time, in groups and without;
a process of its own reads them again and again, and does nothing else. Its cpu time is told for a look every
five seconds, its memory as all that it has, Python included.

Truth: processes that do a known thing (use so much cpu time, hold so much memory, leak, sleep, fork children
that end, write) and say when it is done. What was read then is compared with what is known, and the worst
of several is told. Memory and bytes are compared with what was added, cpu time with what was used.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from bench.figures import Figure
from muster.engines.local import cgroups, processes
from muster.engines.local.cgroups import Cgroups, Group, Limits
from muster.model.units import GIB, MIB
from muster.monitor.meters import Attended, Meters, PartSeen

_JOBS, _FORKING = 200, 20
_LOOKS, _PERIOD_SECONDS = 10, 5.0
_LIMITS = Limits(cpus_milli=1000, memory_bytes=GIB, pids=100)
_TRIES = 3


def measure(say: Callable[[str], None] = lambda _: None) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="muster-") as folder:
        for means in _means():
            say(f"meter: cost, {means}")
            yield _cost(means, folder)
        for kind in _KINDS:
            for means in _means():
                say(f"meter: {kind.name}, {means}")
                yield _truth(kind, means, folder)


def _means() -> list[str]:
    """Groups need rights that not everybody has."""
    with _groups() as found:
        return [found.by, "/proc"] if found.bases else ["/proc"]


@contextlib.contextmanager
def _groups() -> Iterator[Cgroups]:
    found = cgroups.find(f"bench-{os.getpid()}")
    try:
        yield found
    finally:
        found.close()


# --- Processes to be read -------------------------------------------------------------------------


class _Started(NamedTuple):
    """A process, the group it is in, and what is to be read."""

    process: subprocess.Popen[bytes]
    group: Group | None
    part: PartSeen


@contextlib.contextmanager
def _running(commands: list[list[str]], means: str) -> Iterator[list[_Started]]:
    with _groups() as found:
        started: list[_Started] = []
        try:
            for number, command in enumerate(commands):
                group = found.make(f"{number}.1.0", _LIMITS) if means != "/proc" else None
                started.append(_start(command, found, group))
            yield started
        finally:
            for one in started:
                _end(one)


def _start(command: list[str], found: Cgroups, group: Group | None) -> _Started:
    """In a session of its own, as the keeper does it."""
    with found.inside(group):
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
    if group is not None:
        group.limit(_LIMITS)
        group.settle_in(process.pid)
    seen = processes.look(process.pid)
    part = PartSeen(process.pid, None if seen is None else seen.started)
    if group is not None:
        part = msgspec.structs.replace(part, group=group.folders, version=group.version)
    return _Started(process, group, part)


def _end(one: _Started) -> None:
    os.killpg(one.process.pid, signal.SIGKILL)
    with one.process:
        one.process.wait()
    while one.group is not None and not one.group.remove():
        one.group.kill()
        time.sleep(0.01)


# --- What it costs --------------------------------------------------------------------------------


def _cost(means: str, folder: str) -> Figure:
    forking = ["sh", "-c", "while :; do sleep 0.2; done"]
    commands = [forking if number < _FORKING else ["sleep", "600"] for number in range(_JOBS)]
    with _running(commands, means) as started:
        time.sleep(1.0)
        attended = [Attended(str(number), 1, (one.part,)) for number, one in enumerate(started)]
        reader = [sys.executable, "-m", "bench.meter", folder, str(_LOOKS)]
        done = subprocess.run(reader, input=msgspec.json.encode(attended), capture_output=True, check=True)
    told = msgspec.json.decode(done.stdout, type=_Spent)
    percent = 100 * told.seconds_a_look / _PERIOD_SECONDS
    beside = {"ms_a_look": 1000 * told.seconds_a_look, "mb": told.peak_bytes / 1e6}
    return Figure("meter-cost", f"{_JOBS} jobs", means, percent, "% of a core", beside=beside)


class _Spent(msgspec.Struct):
    seconds_a_look: float
    peak_bytes: int


def _read_again_and_again(folder: str, looks: int) -> _Spent:
    """For what is on the standard input. The first look opens files, and is not counted."""
    attended = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Attended])
    meters = Meters(folder)
    meters.read(attended)
    spent: list[float] = []
    for _ in range(looks):
        time.sleep(2.0)  # long enough for others to have had the caches
        before = time.process_time()
        known = sum(reading.cpu_seconds is not None for reading in meters.read(attended).readings)
        spent.append(time.process_time() - before)
        if known < len(attended):
            raise RuntimeError(f"only {known} of {len(attended)} were read")
    return _Spent(median(spent), _peak_bytes())


def _peak_bytes() -> int:
    _, _, rest = Path("/proc/self/status").read_text().partition("VmHWM:")
    return int(rest.split()[0]) * 1024


# --- Whether it is true ---------------------------------------------------------------------------

_HEAD = """
import mmap, os, sys, time
def burn(seconds):
    begun = time.process_time()
    while time.process_time() - begun < seconds:
        sum(range(500))
def hold(size):
    held.append(mmap.mmap(-1, size))
    for page in range(0, size, 4096):
        held[-1][page] = 1
held = []
time.sleep(0.1)
print(flush=True)
for line in sys.stdin:
"""
_TAIL = "    time.sleep(0.1)\n    print(flush=True)\n"  # at rest, all is told that was used
_BURNS = """
    for _ in range(20):
        burn(0.06)
        time.sleep(0.04)
"""
_FORKS = """
    for _ in range(5):
        child = os.fork()
        if not child:
            burn(0.2)
            os._exit(0)
        os.waitpid(child, 0)
"""
_WRITES = f"""
    with open("written", "wb") as file:
        file.write(bytes({64 * MIB}))
        os.fsync(file.fileno())
"""


class _Kind(NamedTuple):
    """What a process does each time that it is told to; and what that adds to which figure.

    What adds nothing is compared with the time that has passed.
    """

    name: str
    does: str
    before: str
    after: str
    adds: float
    times: int = 1


_KINDS = (
    _Kind("burns", _BURNS, "cpu_seconds", "cpu_seconds", 1.2),
    _Kind("sleeps", "    time.sleep(1)\n", "cpu_seconds", "cpu_seconds", 0.0),
    _Kind("forks", _FORKS, "cpu_seconds", "cpu_seconds", 1.0),
    _Kind("holds", f"    hold({256 * MIB})\n", "memory_bytes", "memory_bytes", 256 * MIB),
    _Kind("leaks", f"    hold({32 * MIB})\n", "memory_bytes", "memory_bytes", 32 * MIB, 8),
    _Kind("peaks", f"    hold({256 * MIB}); held.clear()\n", "memory_bytes", "memory_peak_bytes", 256 * MIB),
    _Kind("writes", _WRITES, "written_bytes", "written_bytes", 64 * MIB),
)


def _truth(kind: _Kind, means: str, folder: str) -> Figure:
    errors: list[float] = []
    for _ in range(_TRIES):
        command = [sys.executable, "-c", f"import os\nos.chdir({folder!r})\n{_HEAD}{kind.does}{_TAIL}"]
        with _running([command], means) as (one,), contextlib.closing(Meters(folder)) as meters:
            errors += _errors(kind, one, meters)
    beside = {"mean": sum(errors) / len(errors), "measured": float(len(errors))}
    return Figure("meter-error", kind.name, means, max(errors), "% off at worst", beside=beside)


def _errors(kind: _Kind, one: _Started, meters: Meters) -> Iterator[float]:
    """In percent of the truth."""
    attended = [Attended("1", 1, (one.part,))]
    stdin, stdout = one.process.stdin, one.process.stdout
    if stdin is None or stdout is None:
        raise RuntimeError("the process has no pipes")
    stdout.readline()
    before = meters.read(attended).readings[0]
    for _ in range(kind.times):
        stdin.write(b"\n")
        stdin.flush()
        stdout.readline()
        after = meters.read(attended).readings[0]
        was, has = getattr(before, kind.before), getattr(after, kind.after)
        if was is None or has is None:
            raise RuntimeError(f"{kind.before} or {kind.after} was not told")
        truth = kind.adds or after.since_boot_seconds - before.since_boot_seconds
        yield 100 * abs(has - was - kind.adds) / truth
        before = after


if __name__ == "__main__":
    print(msgspec.json.encode(_read_again_and_again(sys.argv[1], int(sys.argv[2]))).decode())
