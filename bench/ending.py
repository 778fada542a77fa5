"""How long is it from the report that meets an exit until what the job held runs something else?

A real server on one machine, and a job that holds all cpus of it; another waits for them. The first notes
the time, reports, and leaves as soon as it is told to: what is measured is Muster's part, without a
checkpoint. The other notes when it has begun. Reports over the API arrive at once; lines of the output are
looked at twice a second.
"""

import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.dispatch import server
from bench.figures import Figure
from muster.client import Client

_ROUNDS = 12
_PURPOSE = "How long does an exit take to be followed?"
_NOTE = "import time; open({path!r}, 'w').write(repr(time.time()))"
_WAYS = {
    "muster.report": "import muster; muster.report(acc=1.0)",
    "JSON line": "print('{\"acc\": 1.0}', flush=True)",
}


def measure(say: Callable[[str], None] = lambda _: None) -> Iterator[Figure]:
    with server() as (client, _), tempfile.TemporaryDirectory() as folder:
        cpus = client.nodes()[0]["cpus"]
        for way, telling in _WAYS.items():
            taken = []
            for number in range(_ROUNDS):
                say(f"ending: {way}, {number + 1} of {_ROUNDS}")
                taken.append(_once(client, Path(folder), telling, cpus))
            beside = {"median_s": statistics.median(taken), "rounds": float(_ROUNDS)}
            yield Figure("report-to-free", way, "next job runs", max(taken), "s at worst", beside=beside)


def _once(client: Client, folder: Path, telling: str, cpus: float) -> float:
    told, begun = folder / "told", folder / "begun"
    program = f"{_NOTE.format(path=str(told))}\n{telling}\ntime.sleep(100)"
    sleeping = [sys.executable, "-c", f"import time; time.sleep(0.7)\n{program}"]
    first = client.submit(sleeping, cpus=cpus, purpose=_PURPOSE, success=["acc >= 0.9"])
    then = client.submit([sys.executable, "-c", _NOTE.format(path=str(begun))], cpus=cpus, purpose=_PURPOSE)
    for job in (first, then):
        client.wait(job["id"])
    return float(begun.read_text()) - float(told.read_text())
