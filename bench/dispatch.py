"""How fast does one machine get through its queue? Muster beside its peers, in one run.

A thousand times ``/bin/true``, two at a time, from the first submission until all have ended, with the
journal durable. Everybody starts from an empty queue on the same machine, one after the other; what counts
is the ratio to ``xargs -P2``, which keeps nothing. A real server is started for it, in a home of its own.
"""

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.figures import Figure
from muster.client import Client

_JOBS = 1000
_AT_ONCE = 2
_LONG_QUEUE = 100_000
_SAMPLES = 60
_MUSTER = Path(sys.executable).with_name("muster")
_TRUE = "/bin/true"


def measure(say: Callable[[str], None] = lambda _: None) -> Iterator[Figure]:
    rates: dict[str, float] = {}
    for policy, run in _peers().items():
        say(f"dispatch: {policy}")
        seconds = run()
        if seconds is not None:
            rates[policy] = _JOBS / seconds
    for policy, rate in rates.items():
        beside = {"of_xargs": rate / rates["xargs"]}
        yield Figure("dispatch", str(_JOBS), policy, rate, "jobs/s", beside=beside)
    for family in (_start_up, _latency, _idle, _long_queue):
        say(family.__name__.strip("_").replace("_", " "))
        yield from family()


def _peers() -> dict[str, Callable[[], float | None]]:
    return {
        "xargs": _xargs,
        "muster": lambda: _muster(_many),
        "muster-one-by-one": lambda: _muster(_one_by_one),
        "muster-array": lambda: _muster(_as_array),
        "muster-limits": lambda: _muster(_with_limits),
        "task-spooler": _task_spooler,
        "hyperqueue": lambda: _hyperqueue(_hq_jobs),
        "hyperqueue-array": lambda: _hyperqueue(_hq_tasks),
    }


# --- Muster --------------------------------------------------------------------------------------------


@contextmanager
def server() -> Iterator[tuple[Client, subprocess.Popen[bytes]]]:
    """A fresh server on an empty home, that runs two jobs at a time."""
    with tempfile.TemporaryDirectory(prefix="muster-") as folder:
        home = Path(folder)
        (home / "muster.toml").write_text(f"[node]\ncpus = {_AT_ONCE}\n")
        environment = {**os.environ, "MUSTER_HOME": folder}
        with open(home / "server.log", "wb") as log:
            running = subprocess.Popen([_MUSTER, "up"], env=environment, stdout=log, stderr=log)
        try:
            client = Client(home=folder)
            _until(lambda: _answers(client), 30)
            yield client, running
            client.close()
        finally:
            running.terminate()
            running.wait(30)
            subprocess.run([_MUSTER, "down", "--jobs"], env=environment, capture_output=True, check=False)


def _answers(client: Client) -> bool:
    try:
        client.health()
    except Exception:
        return False
    return True


def _until(is_so: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError("the server did not get there in time")
        time.sleep(0.05)  # looking costs the server, too


def _muster(submit: Callable[[Client], None]) -> float:
    with server() as (client, _):
        begun = time.perf_counter()
        submit(client)
        _until(lambda: _is_idle(client), 300)
        return time.perf_counter() - begun


def _is_idle(client: Client) -> bool:
    health = client.health()
    return not health["waiting"] and not health["running"]


def _many(client: Client) -> None:
    client.submit_many([{"command": [_TRUE]}] * _JOBS)


def _one_by_one(client: Client) -> None:
    for _ in range(_JOBS):
        client.submit([_TRUE])


def _as_array(client: Client) -> None:
    client.submit([_TRUE], array=f"1-{_JOBS}")


def _with_limits(client: Client) -> None:
    client.submit_many([{"command": [_TRUE], "memory": "64M", "pids": 64}] * _JOBS)


# --- Peers ---------------------------------------------------------------------------------------------


def _timed(command: list[str], environment: dict[str, str] | None = None, stdin: bytes = b"") -> float:
    begun = time.perf_counter()
    subprocess.run(
        command, input=stdin, env={**os.environ, **(environment or {})}, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - begun


def _xargs() -> float:
    numbers = "\n".join(map(str, range(_JOBS))).encode()
    return _timed(["xargs", f"-P{_AT_ONCE}", "-n1", _TRUE], stdin=numbers)


def _task_spooler() -> float | None:
    found = shutil.which("tsp") or shutil.which("ts")
    if found is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        environment = {"TS_SOCKET": f"{folder}/socket", "TS_SLOTS": str(_AT_ONCE), "TS_MAXFINISHED": "10"}
        script = f'for i in $(seq {_JOBS}); do "{found}" -n {_TRUE} >/dev/null; done; "{found}" -w'
        try:
            return _timed(["sh", "-c", script], environment)
        finally:
            subprocess.run([found, "-K"], env={**os.environ, **environment}, check=False)


def _hyperqueue(submit: Callable[[Any, Any], float]) -> float | None:
    try:
        hyperqueue = importlib.import_module("hyperqueue")
        clusters = importlib.import_module("hyperqueue.cluster")
    except ImportError:
        return None
    with _silent(), clusters.LocalCluster() as cluster:
        cluster.start_worker(clusters.WorkerConfig(cores=_AT_ONCE))
        return submit(hyperqueue, cluster.client())


@contextmanager
def _silent() -> Iterator[None]:
    """It prints where it runs and how far it is, and the figures are on the same paper."""
    kept, nowhere = (os.dup(1), os.dup(2)), os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    try:
        yield
    finally:
        for stream, before in zip((1, 2), kept, strict=True):
            os.dup2(before, stream)
            os.close(before)
        os.close(nowhere)


def _hq_tasks(hq: Any, client: Any) -> float:
    job = hq.Job()
    for _ in range(_JOBS):
        job.program([_TRUE], stdout=None, stderr=None)
    begun = time.perf_counter()
    client.wait_for_jobs([client.submit(job)])
    return time.perf_counter() - begun


def _hq_jobs(hq: Any, client: Any) -> float:
    begun = time.perf_counter()
    submitted = []
    for _ in range(_JOBS):
        job = hq.Job()
        job.program([_TRUE], stdout=None, stderr=None)
        submitted.append(client.submit(job))
    client.wait_for_jobs(submitted)
    return time.perf_counter() - begun


# --- How long a person waits ---------------------------------------------------------------------------


def _start_up() -> Iterator[Figure]:
    """The command line, against Python's own start."""
    with server() as (client, _):
        environment = {"MUSTER_HOME": str(client.home.path)}
        plain = _best([sys.executable, "-c", "pass"])
        for verb, words in {"submit": ["submit", "--hold", "--", _TRUE], "ps": ["ps"]}.items():
            ratio = _best([str(_MUSTER), *words], environment) / plain
            yield Figure("start-up", verb, "muster", ratio, "× python -c pass")


def _best(command: list[str], environment: dict[str, str] | None = None) -> float:
    return min(_timed(command, environment) for _ in range(10))


def _latency() -> Iterator[Figure]:
    with server() as (client, _):
        starts, follows = [], []
        for _ in range(_SAMPLES):
            begun = time.time()
            job = client.submit([_TRUE])
            starts.append(client.wait(job["id"])["started_at"] - begun)
        for _ in range(_SAMPLES):
            first = client.submit([_TRUE], cpus=_AT_ONCE)
            second = client.submit([_TRUE], cpus=_AT_ONCE, after_any=[first["id"]])
            follows.append(client.wait(second["id"])["started_at"] - client.wait(first["id"])["ended_at"])
    for name, seconds in {"submit-to-running": starts, "release-to-next-start": follows}.items():
        beside = {"p99_ms": 1000 * quantiles(seconds, n=100)[98]}
        yield Figure(name, "idle machine", "muster", 1000 * median(seconds), "ms", beside=beside)


def _idle() -> Iterator[Figure]:
    with server() as (client, running):
        client.submit([_TRUE])
        time.sleep(2)
        before = _cpu_seconds(running.pid)
        time.sleep(10)
        part = (_cpu_seconds(running.pid) - before) / 10
    yield Figure("idle", "10 s", "muster", 100 * part, "% of a core")


def _long_queue() -> Iterator[Figure]:
    with server() as (client, running):
        empty = _submit_rate(client)
        client.submit([_TRUE], array=f"1-{_LONG_QUEUE // 2}", hold=True)
        for _ in range(5):
            client.submit(["sleep", "1000"], array=f"1-{_LONG_QUEUE // 10}", cpus=_AT_ONCE)
        full = _submit_rate(client)
        yield Figure("long-queue-submit-ratio", str(_LONG_QUEUE), "muster", full / empty, "of the empty rate")
        environment = {"MUSTER_HOME": str(client.home.path)}
        last = client.submit([_TRUE])["id"]
        for verb, words in {"ps": ["ps"], "why": ["why", last]}.items():
            seconds = _best([str(_MUSTER), *words], environment)
            yield Figure(f"long-queue-{verb}", str(_LONG_QUEUE), "muster", seconds, "s")
        yield Figure("long-queue-memory", str(_LONG_QUEUE), "muster", _peak_mb(running.pid), "MB")


def _submit_rate(client: Client) -> float:
    count = 300
    begun = time.perf_counter()
    for _ in range(count):
        client.submit([_TRUE], hold=True)
    return count / (time.perf_counter() - begun)


def _cpu_seconds(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"process {pid} tells no size")
