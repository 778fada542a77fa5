"""What does it cost Muster to look at a large cluster on Slurm?

Answers for ten thousand jobs and a thousand nodes are made from records of real answers, every job with its
own id, name and node; scripts in the place of Slurm's commands give them. Measured is the cpu time of a whole
pass in this process, as an observing server makes it: asking, reading, and what follows from it as facts. The
time of the commands is not in it; that of the server's taking the facts in, a few at a time, stands beside it
(``state``). In the first pass all jobs are new; between later ones some have moved on. Slurm writes answers
over lines, with where each core is; newer ones leave out the spaces if they are asked to, as Muster does
(``SLURM_JSON``): both are measured.
"""

import json
import os
import re
import shlex
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from typing import Any, NoReturn

from bench.figures import Figure
from muster.engines.slurm.adopting import Adopting
from muster.engines.slurm.books import Books
from muster.engines.slurm.commands import Commands
from muster.engines.slurm.desk import Desk
from muster.engines.slurm.finding import Finder
from muster.engines.slurm.follow import Follower
from muster.engines.slurm.moves import Reading
from muster.engines.slurm.script import Marks
from muster.engines.slurm.settings import SlurmSettings
from muster.home import Home
from muster.model.errors import BadInput
from muster.model.policy import Policy
from muster.store.fold import Fold

_JOBS, _NODES, _TRIES, _LATER = 10_000, 1_000, 5, 3
_MOVED = 500  # jobs, between two looks
_RECORDED = Path(__file__).parent.parent / "tests" / "engines" / "slurm" / "recorded"
_RESTARTS = re.compile(rb'("restart_cnt": ?)0\b')
_NODE = re.compile(r'"node(?=[0-9[])')  # a name, and no key
_MEGABYTE = 1e6
_FORMS = {"over lines": 2, "compact": None}


def measure(say: Callable[[str], None] = lambda _: None) -> Iterator[Figure]:
    if not _RECORDED.is_dir():
        raise BadInput("the recorded answers of Slurm are not here; run the bench from a checkout")
    for folder in sorted(path for path in _RECORDED.iterdir() if path.is_dir()):
        for form, indent in _FORMS.items():
            if indent is None and folder.name.startswith("22"):
                continue  # it knows one form
            say(f"slurm: {folder.name}, {form}")
            jobs = _answer(folder, "squeue", "jobs", _JOBS, indent)
            nodes = _answer(folder, *_nodes_of(folder), _NODES, indent)
            yield _figure(folder, form, jobs, nodes)


def _figure(folder: Path, form: str, jobs: bytes, nodes: bytes) -> Figure:
    tries = [_passes(folder, jobs, nodes) for _ in range(_TRIES)]
    firsts, laters = [one[0] for one in tries], [took for one in tries for took in one[1:]]
    beside = {
        "slowest_s": max(took for took, _ in firsts),
        "state_s": median(took for _, took in firsts),
        "later_s": median(took for took, _ in laters),
        "slowest_later_s": max(took for took, _ in laters),
        "later_state_s": median(took for _, took in laters),
        "megabytes": (len(jobs) + len(nodes)) / _MEGABYTE,
    }
    return Figure(
        "slurm-pass", form, folder.name, median(took for took, _ in firsts), "s of cpu", beside=beside
    )


def _passes(folder: Path, jobs: bytes, nodes: bytes) -> list[tuple[float, float]]:
    """The cpu seconds of each, and those of its facts' becoming state."""
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as name, _commands(Path(name), folder) as asked:
        place = Path(name)
        (place / "nodes").write_bytes(nodes)
        follower, books = _follower(Home(place / "home"))
        fold, found = Fold(Policy()), []
        for number in range(1 + _LATER):
            (place / "jobs").write_bytes(_RESTARTS.sub(rb"\g<1>%d" % number, jobs, count=_MOVED))
            follower.hurry(0.0)
            begun = time.process_time()
            follower.turn()
            told = time.process_time()
            while facts := books.fetched():
                for fact in facts:
                    fold.apply(fact)
            found.append((told - begun, time.process_time() - told))
            _check_asked(asked)
        follower.close()
        books.close()
    return found


def _follower(home: Home) -> tuple[Follower, Books]:
    """The part of the engine that looks, in our hands instead of a thread's."""
    home.make()
    books, slurm, settings = Books(home, _nobody, 0.0), Commands(read_only=True), SlurmSettings(observe=True)
    desk = Desk(books, slurm, home, _nobody, lambda: None)
    finder = Finder(books, slurm, desk, Marks(books.home_id))
    adopting = Adopting(slurm, Reading(is_own=finder.is_own, notices=slurm.notices), 0.0)
    return Follower(books, slurm, desk, finder, adopting, settings, home), books


def _nobody(*_: object) -> NoReturn:
    raise KeyError("there are no jobs of ours")


# --- In the place of Slurm --------------------------------------------------------------------------


@contextmanager
def _commands(place: Path, folder: Path) -> Iterator[Path]:
    """Commands that give the answers in ``jobs`` and ``nodes``, on PATH. Yields where they note calls."""
    partitions = shlex.quote(str(folder / "idle.scontrol-partition.txt"))
    nodes, jobs, asked = (shlex.quote(str(place / name)) for name in ("nodes", "jobs", "asked"))
    bodies = {
        "squeue": f"cat {jobs}",
        "sinfo": f'[ "$1" = --version ] && echo "slurm {folder.name}" && exit\ncat {nodes}',
        "scontrol": f'case "$*" in *partition*) cat {partitions};; *config*) echo "KillWait = 30 sec";;'
        f' *"show node"*) cat {nodes};; *) exit 1;; esac',
        "sacct": "exit 1",
    }
    for name, body in bodies.items():
        path = place / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {asked}\n{body}\n')
        path.chmod(0o755)
    before, conf = os.environ["PATH"], os.environ.pop("SLURM_CONF", None)
    os.environ["PATH"] = f"{place}:{before}"
    try:
        yield place / "asked"
    finally:
        os.environ["PATH"] = before
        if conf is not None:
            os.environ["SLURM_CONF"] = conf


def _check_asked(asked: Path) -> None:
    """Scripts are apart: Slurm gives one at a time, and a few are read in each pass."""
    calls = Counter(line for line in asked.read_text().splitlines() if "batch_script" not in line)
    asked.unlink()
    if doubled := [call for call, count in calls.items() if count > 1]:
        raise AssertionError(f"asked more than once in one pass: {doubled}")


# --- Answers ----------------------------------------------------------------------------------------


def _nodes_of(folder: Path) -> tuple[str, str]:
    """22.05 lists nodes by sinfo, the others by scontrol."""
    return ("sinfo", "nodes") if folder.name.startswith("22") else ("scontrol-node", "nodes")


def _answer(folder: Path, command: str, key: str, count: int, indent: int | None) -> bytes:
    found = [json.loads(path.read_bytes()) for path in sorted(folder.glob(f"*.{command}.json"))]
    records = [record for answer in found for record in answer[key]]
    made = [_one(record, number) for number, record in enumerate(islice(cycle(records), count), 1)]
    separators = (",", ":") if indent is None else None
    return json.dumps({**found[0], "errors": [], key: made}, indent=indent, separators=separators).encode()


def _one(record: dict[str, Any], number: int) -> dict[str, Any]:
    """A copy under its own id, on one of the nodes."""
    if "job_id" not in record:
        return {**record, "name": f"rack{number % 250}-node{1 + number // 250}"}
    text = _NODE.sub(f'"rack{number % 250}-node', json.dumps(record))
    made = {**json.loads(text), "job_id": number, "name": f"train-{number}", "comment": f"muster:{number}"}
    return made | {key: number for key in ("array_job_id", "het_job_id") if _is_set(record.get(key))}


def _is_set(value: Any) -> bool:
    return bool(value.get("number") if isinstance(value, dict) else value)
