"""The reports of the simulated trainings, put on the real board of exits (``steward.exits``)."""

from collections.abc import Iterator

import msgspec
import numpy as np

from bench.quarter_charters import METRIC
from bench.quarter_lives import NOISE, REPORT_SECONDS
from bench.quarter_run import Track
from bench.quarter_steward import Stewarding
from muster.model.charter import Verdict
from muster.model.job import JobId
from muster.steward.exits import Board, Met, exits_of


class _Reporting(msgspec.Struct):
    """A training that reports, and how many of its reports have been made."""

    track: Track
    luck: np.random.Generator
    attempt: int
    reports: int


class Reports:
    """Of all trainings with exits."""

    def __init__(self, steward: Stewarding) -> None:
        self._steward, self._notes = steward, steward.notes
        self._board = Board()
        self._known: dict[JobId, _Reporting] = {}

    def look(self, now: float) -> None:
        """Whatever meets an exit ends, with its verdict."""
        self._see_who_left(now)
        for track, met in list(self._met(now)):
            won = met.verdict == "won"
            verdict, reason = (Verdict.WON, "success") if won else (Verdict.LOST, "failure")
            if self._steward.is_going(track):
                self._steward.end(track, now, verdict, reason)

    def _met(self, now: float) -> Iterator[tuple[Track, Met]]:
        """Since the last look, by a report or by time."""
        for track in self._notes.running.values():
            if track.job.charter.success and (met := self._report(track, now)) is not None:
                yield track, met
        for met in self._board.due(now):
            yield self._known[met.subject].track, met

    def _see_who_left(self, now: float) -> None:
        for job_id in [job_id for job_id in self._known if job_id not in self._notes.running]:
            if self._known[job_id].track.ended_at is None:
                self._board.pause(job_id, now)
            else:
                self._board.end(job_id)
                del self._known[job_id]

    def _report(self, track: Track, now: float) -> Met | None:
        """All that it has told since."""
        one = self._entered(track)
        done, life = track.done_seconds(now), track.work.life
        assert life.curve is not None
        last = min(done, life.useful_seconds) if life.hangs else done
        while (one.reports + 1) * REPORT_SECONDS <= last:
            one.reports += 1
            seconds = one.reports * REPORT_SECONDS
            value = life.curve.at(seconds) + float(one.luck.normal(0.0, NOISE))
            told = {METRIC: value}
            met = self._board.report(track.job.id, track.job.id, now - (done - seconds), told, one.reports)
            if met is not None:
                return met
        return None

    def _entered(self, track: Track) -> _Reporting:
        """On the board; of a new attempt from where its work goes on."""
        assert track.placed_at is not None
        job_id, begun = track.job.id, int(track.done_seconds(track.placed_at) // REPORT_SECONDS)
        one = self._known.get(job_id)
        if one is None:
            luck = np.random.default_rng((self._notes.world.seed, 9, int(track.work.job.id)))
            one = self._known[job_id] = _Reporting(track, luck, track.attempt, begun)
            self._board.begin(job_id, exits_of(track.job.charter), 0.0, track.placed_at)
        elif one.attempt != track.attempt:
            one.attempt, one.reports = track.attempt, begun
            self._board.restarted(job_id, job_id)
            self._board.go_on(job_id, track.placed_at)
        return one
