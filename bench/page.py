"""How quick are the pages? A real Chromium on the simulated Delta (400 GPUs) and on 10,000 GPUs.

- *first paint*: from the navigation of a signed-in browser, with nothing kept, to the end of the first frame
  with the whole map in it, of the first page that a fresh server makes.
- *tick*: a change of a tenth of all marks in view, from its arrival until the next frame is done.
- *wire*: what the stream of one browser sends in a minute of the demonstration's usual activity.
- *watchers*: 200 listeners on one server that runs short jobs: how late ticks come, and what that costs the
  dispatch of jobs, in turns with and without listeners in one run.
"""

import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Page, sync_playwright

from bench.dispatch import server
from bench.figures import Figure
from muster.client import Client
from muster.web.assets import Assets

_CHROMIUM = "/usr/bin/chromium"
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking")
_SITES = {"delta": 400, "stress": 10_000}
_ROUNDS = 3  # fresh servers
_TICKS = 30
_WATCHED_SECONDS = 60.0
_LISTENERS = 200
_JOBS = 1500
_TURNS = 4

# From the navigation to the end of the first frame in which the whole map is there.
_WATCH_PAINT = """
  const look = () => document.readyState !== 'loading' && document.querySelector('#map svg [data-n]')
    ? requestAnimationFrame(() => setTimeout(() => { window.paintedAt = performance.now(); }))
    : requestAnimationFrame(look);
  look();
"""
_PAINTED = "() => window.paintedAt"
_TICK = """(share) => new Promise((done) => {
  const marks = [...document.querySelectorAll('#map svg [data-n]')];
  const level = document.body.dataset.level;
  const changes = {};
  for (const mark of marks) {
    if (Math.random() > share) continue;
    const use = Math.floor(Math.random() * 100), state = Math.floor(Math.random() * 3);
    const counts = [0, 0, 0, 0, 0, 0].map(() => Math.floor(Math.random() * 5));
    const gpu = [state, use, 0, ['1', 'ana', '']];
    changes[mark.dataset.n] = level === 'gpus' ? gpu : [counts, use, 0, 0, use, use];
  }
  requestAnimationFrame(() => {
    const begun = performance.now();
    const detail = { at: Date.now() / 1000, facts: 0, counts: {}, changes, all: false };
    document.dispatchEvent(new CustomEvent('muster:tick', { detail }));
    requestAnimationFrame(() => setTimeout(() => done([performance.now() - begun, marks.length])));
  });
})"""


def measure(say: Callable[[str], None] = lambda _: None) -> Iterator[Figure]:
    yield Figure("page-size", "script and style", "all", Assets().total_bytes() / 1000, "kB uncompressed")
    for site, gpus in _SITES.items():
        say(f"page: {site}")
        yield from _of_site(site, gpus)
    say("page: watchers")
    yield from _watchers()


def _of_site(site: str, gpus: int) -> Iterator[Figure]:
    variant, paints, begun = f"{gpus:,} GPUs", [], []
    for number in range(_ROUNDS):
        with _demo(site) as (url, link, started), _page(link) as page:
            begun.append(started)
            page.add_init_script(_WATCH_PAINT)
            page.goto(f"{url}/where")
            paints.append(page.wait_for_function(_PAINTED).json_value() / 1000)
            if number == _ROUNDS - 1:
                yield from _watched(page, variant)
    beside = {"median_s": statistics.median(paints), "server_up_s": statistics.median(begun)}
    yield Figure("page-first-paint", variant, "/where", max(paints), "s at worst", beside=beside)


def _watched(page: Page, variant: str) -> Iterator[Figure]:
    took = [page.evaluate(_TICK, 0.1) for _ in range(_TICKS)]
    times = sorted(ms for ms, _ in took)
    beside = {"p95_ms": times[int(0.95 * len(times))], "marks": float(took[0][1])}
    yield Figure("page-tick", variant, "a tenth changes", statistics.median(times), "ms", beside=beside)
    yield Figure("page-wire", variant, "one minute", _bytes_heard(page) / 1000, "kB")


def _bytes_heard(page: Page) -> float:
    """What comes over the wire to a page that is only watched."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    heard = [0]

    def add(event: dict[str, Any]) -> None:
        heard[0] += event.get("encodedDataLength") or event["dataLength"]

    session.on("Network.dataReceived", add)
    page.wait_for_timeout(_WATCHED_SECONDS * 1000)
    return heard[0] * 60 / _WATCHED_SECONDS


@contextmanager
def _demo(site: str) -> Iterator[tuple[str, str, float]]:
    """Where it is, a link to sign in, and how long it took to be there."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        log, begun = Path(folder, "log"), time.perf_counter()
        with log.open("wb") as out:
            command = [sys.executable, "-m", "muster", "demo", "--http", "127.0.0.1:0", "--site", site]
            running = subprocess.Popen(
                command, stdout=out, stderr=out, env={**os.environ, "PYTHONUNBUFFERED": "1"}
            )
        try:
            while not (home := re.search(r"MUSTER_HOME=([^\s;]+)", log.read_text())):
                if running.poll() is not None:
                    raise RuntimeError(f"the demonstration did not start: {log.read_text()[-500:]}")
                time.sleep(0.02)
            started = time.perf_counter() - begun
            with Client(home=home[1]) as client:
                link = client.web_link()["urls"][0]
            parts = urlsplit(link)
            yield f"{parts.scheme}://{parts.netloc}", link, started
        finally:
            running.terminate()
            running.wait(30)


@contextmanager
def _page(link: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=list(_FLAGS))
        page = browser.new_context(viewport={"width": 1600, "height": 1000}).new_page()
        page.goto("about:blank")
        cookie = _signed_in(link)
        page.context.add_cookies([{"name": "muster", "value": cookie, "url": link.partition("/sign-in")[0]}])
        yield page
        browser.close()


def _signed_in(link: str) -> str:
    """The cookie, without a page: the one that is measured is to be the server's first."""
    import http.client

    parts = urlsplit(link)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    connection.request("POST", "/sign-in", parts.query, {"content-type": "application/x-www-form-urlencoded"})
    given = connection.getresponse().headers["set-cookie"]
    connection.close()
    return str(given.split(";")[0].partition("=")[2])


# --- Many who watch ------------------------------------------------------------------------------------


def _watchers() -> Iterator[Figure]:
    """In turns, so that whatever else the machine does is in both."""
    alone, watched, late = [], [], []
    with server() as (client, _):
        link = client.web_link()["urls"][0]
        cookie, where = _signed_in(link), urlsplit(link)
        _dispatched(client)  # what is only slow the first time
        for _ in range(_TURNS):
            alone.append(_dispatched(client))
            with _listening(where.hostname or "", where.port or 0, cookie) as gaps:
                watched.append(_dispatched(client))
            late += gaps()
    lateness = sorted(abs(gap - 1.0) for gap in late)
    beside = {"p99_ms": 1000 * lateness[int(0.99 * len(lateness))], "ticks": float(len(late))}
    late_by, variant = 1000 * statistics.median(lateness), f"{_LISTENERS} watchers"
    yield Figure("watched-ticks", variant, "late by", late_by, "ms", beside=beside)
    ratio = statistics.median(watched) / statistics.median(alone)
    beside = {"alone_s": statistics.median(alone), "watched_s": statistics.median(watched)}
    yield Figure("watched-dispatch", variant, "of alone", ratio, "× the time", beside=beside)


def _dispatched(client: Client) -> float:
    begun = time.perf_counter()
    client.submit_many([{"command": ["/bin/true"]}] * _JOBS)
    while (health := client.health())["waiting"] or health["running"]:
        time.sleep(0.02)
    return time.perf_counter() - begun


@contextmanager
def _listening(host: str, port: int, cookie: str) -> Iterator[Callable[[], list[float]]]:
    """Listeners in a process of their own; afterwards, the seconds between the ticks that each heard."""
    words = [sys.executable, "-m", "bench.listeners", host, str(port), cookie, str(_LISTENERS)]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert running.stdout is not None
    running.stdout.readline()  # all of them hear
    gaps: list[float] = []
    try:
        yield lambda: gaps
    finally:
        said, _ = running.communicate("enough\n", timeout=60)
        gaps += json.loads(said)


async def listen(host: str, port: int, cookie: str, count: int) -> list[float]:
    """That many browsers' streams, until standard input says that it is enough."""
    heard: list[list[float]] = [[] for _ in range(count)]
    tasks = [asyncio.create_task(_hear(host, port, cookie, times)) for times in heard]
    while not all(heard):
        await asyncio.sleep(0.05)
    print("all hear", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return [b - a for times in heard for a, b in pairwise(times[1:])]


async def _hear(host: str, port: int, cookie: str, times: list[float]) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(
        f"GET /live?level=gpus HTTP/1.1\r\nhost: {host}:{port}\r\ncookie: muster={cookie}\r\n\r\n".encode()
    )
    try:
        while line := await reader.readline():
            if line.startswith(b"id: "):
                times.append(time.perf_counter())
    finally:
        writer.close()
