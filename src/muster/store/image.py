"""An image of a fold: so that a start folds the last events only, not all since the first day.

What follows from the rest (lanes, room, sums over what runs) is worked out again; what does not is kept, with
the order of whatever is looked at in order, so that a restored fold decides as the old one would have. What
is equal is one object again once restored, which is what keeps long queues small.
"""

from collections.abc import Hashable
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from muster.model.history import kind_of
from muster.model.job import ArrayPlace, Job, JobId
from muster.model.mix import Mix
from muster.model.policy import Policy
from muster.model.resources import Resources
from muster.model.snapshot import LaneKey, Running, Waiting
from muster.model.state import State
from muster.model.tenancy import Tenancy
from muster.store.draw import Sketch
from muster.store.fold import Fold
from muster.store.layout import BrokenImage, Image, Row, decode_live, decode_runs, is_usable, sealed, unsealed
from muster.store.records import Record, by_age

__all__ = ["BrokenImage", "Image", "Sketch", "fold_from", "image_from", "image_of", "is_usable"]

Value = TypeVar("Value", bound=Hashable)


def image_of(fold: Fold) -> bytes:
    """The fold as bytes."""
    return image_from(Sketch(fold))


def image_from(sketch: Sketch) -> bytes:
    """The fold as it was when it was sketched; in any thread."""
    return sealed(sketch.drawn())


def fold_from(image: bytes, policy: Policy, remembers: int | None = None) -> Fold:
    """The fold that an image shows."""
    return _restored(unsealed(image), Fold(policy, remembers=remembers))


class _Shared:
    """Of equal values the first that came, so that each is kept once."""

    def __init__(self, image: Image) -> None:
        self._first: dict[Hashable, Hashable] = {}
        self._lanes: dict[tuple[int, str], tuple[LaneKey, Resources]] = {}
        self._runs = [
            replace(image.shells[shell], argv=tuple(map(self.one, argv)))
            for chunk in image.runs
            for shell, argv in decode_runs(chunk)
        ]
        self._templates = [self.job(template, None) for template in image.templates]

    def one(self, value: Value) -> Value:
        return self._first.setdefault(value, value)  # type: ignore[return-value]

    def job(self, job: Job, run: int | None) -> Job:
        return replace(
            job,
            gang=self.one(job.gang),
            charter=self.one(job.charter),
            owner=self.one(job.owner),
            team=self.one(job.team),
            run=None if run is None else self._runs[run],
        )

    def array(self, place: ArrayPlace | None) -> ArrayPlace | None:
        return None if place is None else replace(place, array=self.one(place.array))

    def waiting(self, row: Row) -> Waiting:
        job = replace(
            self._templates[row.template],
            id=row.id,
            submitted_at=row.submitted_at,
            name=self.one(row.name),
            begin_at=row.begin_at,
            after=row.after,
            array=self.array(row.array),
            params=row.params,
            run=None if row.run is None else self._runs[row.run],
        )
        lane, asked = self._lane(row, job)
        return Waiting(
            job,
            lane,
            asked,
            attempt=row.attempt,
            queued_at=row.submitted_at if row.queued_at == row.submitted_at else row.queued_at,
            attained_seconds=row.attained_seconds or 0.0,  # the constant, not another object for nothing
            done_seconds=row.done_seconds or 0.0,
            vacated_at=row.vacated_at,
            mended=row.mended,
            held_because=row.held_because,
        )

    def _lane(self, row: Row, job: Job) -> tuple[LaneKey, Resources]:
        alike = (row.template, kind_of(row.name))
        known = self._lanes.get(alike)
        if known is None:
            known = self._lanes[alike] = (self.one(LaneKey.of(job)), self.one(job.gang.asked()))
        return known


def _restored(image: Image, fold: Fold) -> Fold:
    shared = _Shared(image)
    _restore_inventory(image, fold)
    fold._unmet, fold._doomed = image.unmet, image.doomed  # who waits for nothing but a time depends on it
    _restore_jobs(image, fold, shared)
    fold._accounts = {(team, owner): account for team, owner, account in image.accounts}
    fold._active = {(team, owner): count for team, owner, count in image.active}
    for array, run in image.arrays:
        template = shared.job(array.template, run)
        fold.arrays[template.id] = replace(array, template=template)
    for job_id in fold.records:  # in the order in which they came, as they are told in that order
        for other in image.unmet.get(job_id, ()):
            fold._dependents.setdefault(other, []).append(job_id)
    fold._promised, fold._evicting = image.promised, image.evicting
    fold.findings = image.findings
    fold.stewardship, fold.mailboxes = image.stewardship, image.mailboxes
    fold.ended = {(team, outcome): count for team, outcome, count in image.ended_ever}
    _restore_experience(image, fold, shared)
    fold.now, fold.generation, fold.submissions = image.now, image.generation, image.submissions
    return fold


def _restore_inventory(image: Image, fold: Fold) -> None:
    fold._nodes = {node.name: node for node in image.nodes}
    fold._teams = {team.name: team for team in image.teams}
    fold._tenancy = Tenancy(image.teams)
    fold._inventory_changed = True
    fold._refresh_inventory()


def _restore_jobs(image: Image, fold: Fold, shared: _Shared) -> None:
    _remember_ended(image, fold)
    placed = [replace(running, job=shared.job(running.job, run)) for running, run in image.running]
    for running in placed:
        if running.behind is None:
            fold._running[running.job.id] = running
            fold._hold(running, 1)
        else:
            fold._lined_up[running.behind] = running.job.id
    by_id = {running.job.id: running for running in placed}
    for chunk in image.live:
        for row in decode_live(chunk):
            fold.records[row if isinstance(row, str) else row.id] = _record(row, by_id, shared)
    _restore_queue(image, fold)


def _record(row: Row | JobId, placed: dict[JobId, Running], shared: _Shared) -> Record:
    if isinstance(row, Row):
        waiting = shared.waiting(row)
        return Record(State.HELD if waiting.job.held else State.QUEUED, waiting)
    return Record(placed[row].state, running=placed[row])


def _remember_ended(image: Image, fold: Fold) -> None:
    most = len(image.ended) if fold._remembers is None else fold._remembers
    for job_id, outcome in image.ended[max(0, len(image.ended) - most) :]:
        fold.records[job_id] = Record(State.ENDED, outcome=outcome)
        fold._ended_jobs.append(job_id)


def _restore_queue(image: Image, fold: Fold) -> None:
    waiting = {j: record.waiting for j, record in fold.records.items() if record.waiting is not None}
    for job_id in image.ineligible:
        fold._set_apart(waiting.pop(job_id))
    fold._lanes = {waiting[head].lane: [] for head in image.lanes}
    for one in waiting.values():
        fold._lanes[one.lane].append(one)
    for lane in fold._lanes.values():
        lane.sort(key=by_age)


def _restore_experience(image: Image, fold: Fold, shared: _Shared) -> None:
    history, lives, mix = fold._history, fold._lives, fold._mix
    history._lately, history._typical = image.history.lately, image.history.typical_seconds
    history._runs = {
        whose: tuple(replace(run, gang=shared.one(run.gang)) for run in runs)
        for whose, runs in image.history.runs.items()
    }
    lives._deaths = {shared.one(gang): np.array(levels) for gang, levels in image.lives.deaths}
    lives._exposure = {shared.one(gang): np.array(levels) for gang, levels in image.lives.exposure}
    lives._mates, lives._ended = image.lives.mates, image.lives.ended
    lives._latest = {(owner, shared.one(gang)): latest for owner, gang, latest in image.lives.latest}
    mix._counts, mix._seen, mix._show_next = dict(image.mix.counts), image.mix.seen, image.mix.show_next
    mix._view = Mix(image.mix.classes, image.mix.version)
