"""Jobs whose bound is known, since they were written for it.

Each is a small program that runs until it is ended, under limits of its own. What bounds it is true by
construction: what it would be faster with more of. Those that a disk bounds, and those whose memory is taken
and has to be read again, run on a disk that is capped: how fast the real one is would else decide. There is
no GPU here: what GPUs show is scripted, and put beside what was measured of a real job on the host.
"""

from typing import NamedTuple

from muster.model.usage import Stat
from muster.steward.scores import Bound


class Caps(NamedTuple):
    """Of the disk, a second. 0: none."""

    read_bps: int = 0
    write_bps: int = 0
    read_iops: int = 0
    write_iops: int = 0


class BoundJob(NamedTuple):
    """A program, its limits, and the truth."""

    name: str
    truth: Bound
    program: str  # Python; {folder} is one of its own on a disk
    cpus: float = 1.0  # held
    cap: bool = False  # whether it gets no more
    memory_mib: int = 0  # 0: no limit
    caps: Caps = Caps()
    gpus: tuple[Stat, ...] = ()  # what its devices show, scripted


_BURN = "while True: sum(range(20000))"
_BURN_MANY = """
import os
for _ in range({count} - 1):
    if not os.fork(): break
while True: sum(range(20000))
"""
_BURSTS = """
import time
while True:
    end = time.thread_time() + {busy}
    while time.thread_time() < end: sum(range(2000))
    time.sleep({idle})
"""
_SQUEEZE = """
import os, zlib
block = os.urandom(1 << 20)
while True: zlib.compress(block, 9)
"""
_MAKE_FILE = """
import os
path = "{folder}/data"
with open(path, "wb") as file:
    for _ in range({mib}): file.write(b"x" * (1 << 20))
    os.fsync(file.fileno())
"""
_THRASH = """
import mmap, random
with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
    while True:
        for at in {order}: data[at << 12]
"""
_REREAD = """
held = bytearray({held} << 20)
for at in range(0, len(held), 4096): held[at] = 1
while True:
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 16): pass
"""
_STREAM = """
with open(path, "rb", buffering=0) as file:
    while True:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        os.lseek(file.fileno(), 0, 0)
        while file.read(1 << 16): pass
"""
_SYNC = """
import os
file = os.open("{folder}/data", os.O_CREAT | os.O_WRONLY)
while True:
    os.pwrite(file, b"x" * {size}, 0)
    os.fsync(file)
"""
_DIRECT = """
import mmap, os
block = mmap.mmap(-1, 1 << 20)
file = os.open("{folder}/data", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
while True:
    for at in range(128): os.pwritev(file, [block], at << 20)
"""
_DIRECT_READ = """
import mmap, os, random
block = mmap.mmap(-1, 1 << 20)
file = os.open("{folder}/data", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
for at in range(256): os.pwritev(file, [block], at << 20)
small = mmap.mmap(-1, 4096)
while True: os.preadv(file, [small], random.randrange(65536) << 12)
"""
_COMMITS = """
import sqlite3
base = sqlite3.connect("{folder}/base", isolation_level=None)
base.execute("pragma synchronous=full")
base.execute("create table t (v)")
while True: base.execute("insert into t values (1)")
"""
_LOCK = """
import fcntl, os, time
file = open("{folder}/lock", "w")
if not os.fork():
    theirs = open("{folder}/lock")
    fcntl.flock(theirs, fcntl.LOCK_EX)
    time.sleep(1000)
time.sleep(0.5)
fcntl.flock(file, fcntl.LOCK_EX)
"""
_DEADLOCK = """
import threading
a, b = threading.Lock(), threading.Lock()
def take(first, second):
    with first:
        threading.Event().wait(0.2)
        with second: pass
for pair in ((a, b), (b, a)): threading.Thread(target=take, args=pair).start()
"""
_NETWORK = """
import os, socket, time
left, right = socket.socketpair()
if not os.fork():
    while True: time.sleep(0.05); right.send(b"x" * {size})
while True: left.recv(1 << 16)
"""
_DOWNLOAD = """
import os, socket, time
left, right = socket.socketpair()
if not os.fork():
    while True: time.sleep(0.1); right.sendall(b"x" * 30000)
with open("{folder}/data", "wb") as file:
    while True: file.write(left.recv(1 << 16))
"""
_LOOK_UP = """
import random, sqlite3
base = sqlite3.connect("{folder}/base")
base.execute("pragma cache_size=-2000")
base.execute("create table t (k integer primary key, v)")
base.executemany("insert into t values (?, ?)", ((key, b"x" * 1000) for key in range(80000)))
base.commit()
while True: base.execute("select v from t where k = ?", (random.randrange(80000),)).fetchone()
"""
_POOL = """
import multiprocessing
def work(count): return sum(range(count))
with multiprocessing.Pool(3) as pool:
    while True: pool.map(work, [300000] * 30)
"""
_SLEEP = "import time; time.sleep(1000)"
_POLL = """
import os, time
while True: os.path.exists("{folder}/done"); time.sleep(0.01)
"""


def _on_file(mib: int, program: str) -> str:
    return _MAKE_FILE.replace("{mib}", str(mib)) + program


def _thrash(mib: int, order: str) -> str:
    return _on_file(mib, _THRASH.replace("{order}", order))


def _cpu_jobs() -> list[BoundJob]:
    bursts = _BURSTS.replace("{busy}", "0.2").replace("{idle}", "0.05")
    return [
        BoundJob("burns its cpu", Bound.CPU, _BURN, cpus=1.0, cap=True),
        BoundJob("burns half a cpu", Bound.CPU, _BURN, cpus=0.5, cap=True),
        BoundJob("burns a fifth of a cpu", Bound.CPU, _BURN, cpus=0.2, cap=True),
        BoundJob("three burn one cpu", Bound.CPU, _BURN_MANY.replace("{count}", "3"), cpus=1.0, cap=True),
        BoundJob("compresses on one cpu", Bound.CPU, _SQUEEZE, cpus=1.0),
        BoundJob("bursts beyond its cap", Bound.CPU, bursts, cpus=0.4, cap=True),
        BoundJob("one thread of two cpus", Bound.CPU, _BURN, cpus=2.0),
    ]


def _memory_jobs() -> list[BoundJob]:
    """All that they read would stay, if they had twice the memory."""
    at_random = _thrash(128, "(random.randrange(128 << 8) for _ in range(4096))")
    in_order = _thrash(96, "range(96 << 8)")
    again, squeezed = (
        _on_file(96, _REREAD.replace("{held}", "0")),
        _on_file(64, _REREAD.replace("{held}", "96")),
    )
    slow = Caps(read_bps=40 << 20)
    return [
        BoundJob("maps twice what it has, at random", Bound.MEMORY, at_random, memory_mib=64),
        BoundJob("the same on a slow disk", Bound.MEMORY, at_random, memory_mib=64, caps=slow),
        BoundJob("maps more than it has, in order", Bound.MEMORY, in_order, memory_mib=64, caps=slow),
        BoundJob("reads again what does not stay", Bound.MEMORY, again, memory_mib=64, caps=slow),
        BoundJob("looks up more than fits", Bound.MEMORY, _LOOK_UP, memory_mib=48, caps=Caps(read_iops=2000)),
        BoundJob("holds all but a little", Bound.MEMORY, squeezed, memory_mib=128, caps=slow),
    ]


def _disk_jobs() -> list[BoundJob]:
    slow, seldom = Caps(4 << 20, 4 << 20), Caps(read_iops=100, write_iops=100)
    small, large = _SYNC.replace("{size}", "4096"), _SYNC.replace("{size}", "(1 << 20)")
    return [
        BoundJob("syncs small writes", Bound.DISK, small, caps=seldom),
        BoundJob("syncs large writes", Bound.DISK, large, caps=slow),
        BoundJob("commits", Bound.DISK, _COMMITS, caps=seldom),
        BoundJob("writes past the cache", Bound.DISK, _DIRECT, cpus=2.0, caps=slow),
        BoundJob("reads past the cache", Bound.DISK, _DIRECT_READ, caps=Caps(read_iops=500)),
        BoundJob(
            "reads what nobody has read yet", Bound.DISK, _on_file(64, _STREAM), caps=Caps(read_bps=8 << 20)
        ),
        BoundJob("syncs large writes seldom", Bound.DISK, large, cpus=4.0, caps=Caps(write_iops=20)),
    ]


def _waiting_jobs() -> list[BoundJob]:
    a_third = _BURSTS.replace("{busy}", "0.03").replace("{idle}", "0.07")
    now_and_then = _BURSTS.replace("{busy}", "0.05").replace("{idle}", "0.95")
    return [
        BoundJob("sleeps", Bound.WAITING, _SLEEP),
        BoundJob("waits for a lock", Bound.WAITING, _LOCK),
        BoundJob("locks itself out", Bound.WAITING, _DEADLOCK, cpus=2.0),
        BoundJob("waits for a slow peer", Bound.WAITING, _NETWORK.replace("{size}", "1000")),
        BoundJob("waits for a peer that sends more", Bound.WAITING, _NETWORK.replace("{size}", "50000")),
        BoundJob("downloads", Bound.WAITING, _DOWNLOAD),
        BoundJob("looks again and again", Bound.WAITING, _POLL, memory_mib=256),
        BoundJob("works a third of the time", Bound.WAITING, a_third),
        BoundJob("works now and then", Bound.WAITING, now_and_then, cpus=0.5, cap=True),
    ]


def _gpu_jobs() -> list[BoundJob]:
    busy, dips = Stat(0.93, 0.97, 1.0), Stat(0.2, 0.88, 1.0)
    gaps, rare, idle = Stat(0.0, 0.31, 0.98), Stat(0.0, 0.12, 0.9), Stat(0.0, 0.0, 0.0)
    return [
        BoundJob("GPU busy, host asleep", Bound.GPU, _SLEEP, cpus=8.0, gpus=(busy,)),
        BoundJob("GPU busy, one thread spins", Bound.GPU, _BURN, cpus=8.0, gpus=(busy,)),
        BoundJob("GPUs busy but for saving", Bound.GPU, _POLL, cpus=4.0, gpus=(dips, dips)),
        BoundJob("one GPU of two busy", Bound.GPU, _SLEEP, cpus=4.0, gpus=(busy, idle)),
        BoundJob("GPU starved by its workers", Bound.INPUT, _POOL, cpus=2.0, gpus=(gaps,)),
        BoundJob("GPU starved by cpus", Bound.INPUT, _BURN, cpus=1.0, cap=True, gpus=(gaps,)),
        BoundJob("GPU starved by a cap", Bound.INPUT, _BURN, cpus=0.5, cap=True, gpus=(rare,)),
        BoundJob(
            "GPUs starved by the disk",
            Bound.INPUT,
            _DIRECT_READ,
            4.0,
            caps=Caps(read_iops=300),
            gpus=(gaps, gaps),
        ),
        BoundJob("GPU held and all asleep", Bound.WAITING, _SLEEP, cpus=4.0, gpus=(idle,)),
    ]


JOBS: tuple[BoundJob, ...] = (*_cpu_jobs(), *_memory_jobs(), *_disk_jobs(), *_waiting_jobs(), *_gpu_jobs())
