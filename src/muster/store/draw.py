"""Drawing an image of a fold, in two steps: a sketch, and what is made of it.

The sketch is made in a moment, between two events. The rest takes a while when the queue is long; it may be
done in another thread, while the fold goes on.
"""

import itertools
from collections.abc import Hashable, Iterable
from typing import TypeVar

from msgspec.structs import replace

from muster.model.job import Job
from muster.model.run import Run
from muster.model.snapshot import Running, Waiting
from muster.store.fold import Fold
from muster.store.layout import Image, KeptHistory, KeptLives, KeptMix, Row, encode
from muster.store.records import ArrayRecord

_CHUNK = 1000

Value = TypeVar("Value", bound=Hashable)


class Sketch:
    """Everything that an image will show. The values are frozen; whatever holds them is copied."""

    def __init__(self, fold: Fold) -> None:
        self._live = [r.waiting or job_id for job_id, r in fold.records.items() if r.outcome is None]
        self._running = [*fold._running.values(), *fold.lined_up]
        self._arrays = [replace(array) for array in fold.arrays.values()]
        self._rest = _small_things(fold)

    def drawn(self) -> Image:
        templates, runs, shells = _Table[Job](), _Table[Run](), _Table[Run]()
        live = _chunked(_row(one, templates, runs) if isinstance(one, Waiting) else one for one in self._live)
        running = tuple(_without_run(running, runs) for running in self._running)
        arrays = tuple(_array_without_run(array, runs) for array in self._arrays)
        called = _chunked((shells[replace(run, argv=())], run.argv) for run in runs)
        return replace(
            self._rest,
            live=live,
            running=running,
            arrays=arrays,
            templates=tuple(templates),
            runs=called,
            shells=tuple(shells),
        )


def _small_things(fold: Fold) -> Image:
    """An image without what is much when the queue is long."""
    history = fold._history
    return Image(
        now=fold.now,
        generation=fold.generation,
        submissions=fold.submissions,
        templates=(),
        shells=(),
        runs=(),
        live=(),
        lanes=tuple(lane[0].job.id for lane in fold._lanes.values()),
        ineligible=tuple(fold._ineligible),
        running=(),
        ended=tuple((j, outcome) for j in fold._ended_jobs if (outcome := fold.records[j].outcome)),
        ended_ever=tuple((*whose, count) for whose, count in fold.ended.items()),
        nodes=tuple(fold._nodes.values()),
        teams=tuple(fold._teams.values()),
        accounts=tuple((*holder, account) for holder, account in fold._accounts.items()),
        active=tuple((*holder, count) for holder, count in fold._active.items()),
        unmet=dict(fold._unmet),
        doomed=dict(fold._doomed),
        arrays=(),
        promised=dict(fold._promised),
        evicting=dict(fold._evicting),
        findings=dict(fold.findings),
        history=KeptHistory(dict(history._runs), history._lately, history._typical),
        lives=_drawn_lives(fold),
        mix=_drawn_mix(fold),
        stewardship=fold.stewardship.copied(),
        mailboxes=fold.mailboxes.copied(),
    )


def _drawn_lives(fold: Fold) -> KeptLives:
    book = fold._lives
    return KeptLives(
        deaths=tuple((gang, tuple(levels.tolist())) for gang, levels in book._deaths.items()),
        exposure=tuple((gang, tuple(levels.tolist())) for gang, levels in book._exposure.items()),
        mates=dict(book._mates),
        ended=dict(book._ended),
        latest=tuple((owner, gang, list(latest)) for (owner, gang), latest in book._latest.items()),
    )


def _drawn_mix(fold: Fold) -> KeptMix:
    mix = fold._mix
    shown = mix._view
    return KeptMix(tuple(mix._counts.items()), mix._seen, mix._show_next, shown.classes, shown.version)


# --- What is much -----------------------------------------------------------------------------------


class _Table(dict[Value, int]):
    """Numbers values in the order in which they are first seen."""

    def __missing__(self, value: Value) -> int:
        number = self[value] = len(self)
        return number


def _chunked(values: Iterable[object]) -> tuple[memoryview, ...]:
    left = iter(values)
    chunks = iter(lambda: list(itertools.islice(left, _CHUNK)), [])
    return tuple(memoryview(encode(chunk)) for chunk in chunks)


def _number(run: Run | None, runs: _Table[Run]) -> int | None:
    return None if run is None else runs[run]


def _without_run(running: Running, runs: _Table[Run]) -> tuple[Running, int | None]:
    job = running.job
    return replace(running, job=replace(job, run=None)), _number(job.run, runs)


def _array_without_run(array: ArrayRecord, runs: _Table[Run]) -> tuple[ArrayRecord, int | None]:
    template = array.template
    return replace(array, template=replace(template, run=None)), _number(template.run, runs)


def _row(waiting: Waiting, templates: _Table[Job], runs: _Table[Run]) -> Row:
    job = waiting.job
    blank = replace(
        job, id="", submitted_at=0.0, name="", begin_at=None, after=(), array=None, params=(), run=None
    )
    return Row(
        job.id,
        templates[blank],
        _number(job.run, runs),
        job.submitted_at,
        job.name,
        job.begin_at,
        job.after,
        job.array,
        job.params,
        waiting.attempt,
        waiting.queued_at,
        waiting.attained_seconds,
        waiting.done_seconds,
        waiting.vacated_at,
        waiting.mended,
        waiting.held_because,
    )
