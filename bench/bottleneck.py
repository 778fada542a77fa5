"""Does Muster see what bounds a job? Real programs whose bound is known, measured, and judged.

Each runs for some seconds in control groups of its own, is read every half second, and what was read becomes
a minute as the monitor keeps it. The verdict is made of that: once with all that was measured, and once
without pressure, as on machines that do not tell it. Where no groups can be made, minutes are taken that were
recorded on a machine that could (``python -m bench.bottleneck FILE`` records).
"""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from bench.bottleneck_jobs import JOBS, BoundJob
from bench.figures import Figure
from muster.model.resources import Resources
from muster.model.units import MIB, MILLI
from muster.model.usage import Rollup, Stat
from muster.steward.bottleneck import Verdict, bound
from muster.steward.scores import Bound

RECORDED = Path(__file__).with_suffix(".json")
_TREES = ("cpu", "cpuacct", "memory", "blkio", "unified")
_ROOT = Path("/sys/fs/cgroup")
_WARM_UP_SECONDS, _SECONDS, _EVERY_SECONDS = 2.0, 6.0, 0.5
_PERIOD_US, _PAGE_BYTES = 100_000, os.sysconf("SC_PAGE_SIZE")
_BY_NAME = {job.name: job for job in JOBS}
_PRESSURES = ("cpu_pressure", "memory_pressure", "io_pressure")


class Measured(msgspec.Struct, frozen=True):
    """A job of the set, by its name, and its minute."""

    name: str
    minute: Rollup


def measure(say: Callable[[str], None] = lambda _: None) -> Iterator[Figure]:
    live = can_measure()
    minutes = list(_live(JOBS, say)) if live else recorded()
    variant = f"{len(minutes)} jobs" if live else f"{len(minutes)} recorded"
    for policy, forget in (("with pressure", False), ("without", True)):
        yield _figure(variant, policy, [judged(one, forget=forget) for one in minutes])


def recorded() -> list[Measured]:
    return msgspec.json.decode(RECORDED.read_bytes(), type=list[Measured])


class Judged(NamedTuple):
    truth: Bound
    verdict: Verdict

    @property
    def right(self) -> bool:
        return self.verdict.bound is self.truth


def judged(one: Measured, *, forget: bool = False) -> Judged:
    """The verdict on a measured job. ``forget``: as if the machine did not tell pressure."""
    job = _BY_NAME[one.name]
    minute = msgspec.structs.replace(one.minute, **dict.fromkeys(_PRESSURES)) if forget else one.minute
    held = Resources(round(job.cpus * MILLI), job.memory_mib * MIB, len(job.gpus) * MILLI)
    return Judged(job.truth, bound([minute], held))


def _figure(variant: str, policy: str, all_: Sequence[Judged]) -> Figure:
    """How many are right, by kind; and how sure the right and the wrong ones were."""
    beside: dict[str, float] = {"jobs": len(all_)}
    for kind in dict.fromkeys(one.truth for one in all_):
        beside[f"right_{kind}".replace(" ", "_")] = sum(one.right for one in all_ if one.truth is kind)
        beside[f"of_{kind}".replace(" ", "_")] = sum(one.truth is kind for one in all_)
    for said, right in (("sure_if_right", True), ("sure_if_wrong", False)):
        sure = [one.verdict.sure for one in all_ if one.right is right]
        if sure:
            beside[said] = sum(sure) / len(sure)
    return Figure("bottleneck", variant, policy, sum(one.right for one in all_), "right", beside=beside)


# --- Measuring ------------------------------------------------------------------------------------------


def can_measure() -> bool:
    """Whether all the trees are there (version 1, and 2 for pressure), and ours to write."""
    return all(os.access(_ROOT / tree, os.W_OK) for tree in _TREES)


def _live(jobs: Sequence[BoundJob], say: Callable[[str], None]) -> Iterator[Measured]:
    for number, job in enumerate(jobs, 1):
        say(f"bottleneck: {number} of {len(jobs)}, {job.name}")
        with tempfile.TemporaryDirectory(prefix="muster-") as folder, _groups(job, folder) as groups:
            with _running(job, folder, groups):
                time.sleep(_WARM_UP_SECONDS)
                readings = [_reading(groups)]
                while readings[-1].at < readings[0].at + _SECONDS:
                    time.sleep(_EVERY_SECONDS)
                    readings.append(_reading(groups))
            yield Measured(job.name, _minute(job, readings))


@contextlib.contextmanager
def _groups(job: BoundJob, folder: str) -> Iterator[dict[str, Path]]:
    groups = {tree: _ROOT / tree / f"muster-bench-{os.getpid()}" for tree in _TREES}
    for group in groups.values():
        group.mkdir()
    try:
        _limit(job, groups, os.stat(folder).st_dev)
        yield groups
    finally:
        for group in groups.values():
            group.rmdir()


def _limit(job: BoundJob, groups: dict[str, Path], device: int) -> None:
    if job.cap:
        (groups["cpu"] / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        (groups["cpu"] / "cpu.cfs_quota_us").write_text(str(round(job.cpus * _PERIOD_US)))
    if job.memory_mib:
        (groups["memory"] / "memory.limit_in_bytes").write_text(str(job.memory_mib * MIB))
    disk = f"{os.major(device)}:{os.minor(device)}"
    for what, cap in job.caps._asdict().items():
        if cap:
            (groups["blkio"] / f"blkio.throttle.{what}_device").write_text(f"{disk} {cap}")


@contextlib.contextmanager
def _running(job: BoundJob, folder: str, groups: dict[str, Path]) -> Iterator[None]:
    enter = " && ".join(f"echo $$ > {group}/cgroup.procs" for group in groups.values())
    program = job.program.replace("{folder}", folder)
    shell = ["sh", "-c", f'{enter} && exec "$0" -c "$1"', sys.executable, program]
    started = subprocess.Popen(shell, start_new_session=True)
    try:
        yield
        if started.poll() is not None:
            raise RuntimeError(f"{job.name!r} ended by itself, with {started.returncode}")
    finally:
        while members := _members(groups):
            for pid in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            started.poll()
            time.sleep(0.05)
        started.wait()


class _Reading(NamedTuple):
    at: float
    cpu_seconds: float
    throttled_seconds: float
    memory_bytes: int
    processes: int
    read_bytes: int
    written_bytes: int
    refaulted_bytes: int
    cpu_stalled: float
    memory_stalled: float
    io_stalled: float


def _reading(groups: dict[str, Path]) -> _Reading:
    memory, pressure = groups["memory"], groups["unified"]
    cached = _field(memory / "memory.stat", "total_inactive_file")
    members = _members(groups)
    moved = [_moved(pid) for pid in members]
    return _Reading(
        time.monotonic(),
        int((groups["cpuacct"] / "cpuacct.usage").read_text()) / 1e9,
        _field(groups["cpu"] / "cpu.stat", "throttled_time") / 1e9,
        int((memory / "memory.usage_in_bytes").read_text()) - cached,
        len(members),
        sum(read for read, _ in moved),
        sum(written for _, written in moved),
        _field(memory / "memory.stat", "total_workingset_refault_file") * _PAGE_BYTES,
        *(_stalled(pressure / f"{what}.pressure") for what in ("cpu", "memory", "io")),
    )


def _members(groups: dict[str, Path]) -> list[int]:
    return [int(pid) for pid in (groups["cpu"] / "cgroup.procs").read_text().split()]


def _moved(pid: int) -> tuple[int, int]:
    """Bytes from and to disks. The group's own counters stay at nothing for disks without a cap."""
    try:
        io = Path(f"/proc/{pid}/io")
        return _field(io, "read_bytes:"), _field(io, "write_bytes:")
    except (OSError, ProcessLookupError):
        return 0, 0


def _field(file: Path, name: str) -> int:
    for line in file.read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    raise RuntimeError(f"{file} does not tell {name}")


def _stalled(file: Path) -> float:
    """``some avg10=… total=1234``, in microseconds."""
    return int(file.read_text().partition("total=")[2].split()[0]) / 1e6


def _minute(job: BoundJob, readings: list[_Reading]) -> Rollup:
    """The readings rolled up, as the monitor does."""
    seconds = readings[-1].at - readings[0].at
    first, last = readings[0], readings[-1]

    def rate(what: str) -> Stat:
        values = [
            (getattr(b, what) - getattr(a, what)) / (b.at - a.at) for a, b in itertools.pairwise(readings)
        ]
        return Stat(min(values), (getattr(last, what) - getattr(first, what)) / seconds, max(values))

    def level(what: str) -> Stat:
        values = [float(getattr(reading, what)) for reading in readings[1:]]
        return Stat(min(values), sum(values) / len(values), max(values))

    return Rollup(
        job=job.name,
        attempt=1,
        start=0.0,
        held_seconds=seconds,
        measured_seconds=seconds,
        cpus=rate("cpu_seconds"),
        throttled=rate("throttled_seconds"),
        memory_bytes=level("memory_bytes"),
        processes=level("processes"),
        read_bytes=max(0, last.read_bytes - first.read_bytes),
        written_bytes=max(0, last.written_bytes - first.written_bytes),
        refaulted_bytes=last.refaulted_bytes - first.refaulted_bytes,
        cpu_pressure=rate("cpu_stalled"),
        memory_pressure=rate("memory_stalled"),
        io_pressure=rate("io_stalled"),
        gpu_busy=job.gpus,
    )


def record(path: Path) -> None:
    """Keep the minutes of this machine's run."""
    minutes = list(_live(JOBS, lambda said: print(said, file=sys.stderr)))
    path.write_bytes(msgspec.json.format(msgspec.json.encode(minutes), indent=1) + b"\n")


if __name__ == "__main__":
    record(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDED)
