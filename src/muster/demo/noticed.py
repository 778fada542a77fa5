"""What the steward noticed in the simulated week: idle work, by its own rules, and what owners were told."""

from muster.demo.meters import METRIC
from muster.demo.past import Past
from muster.demo.usage import minutes_of
from muster.model.events import Found
from muster.model.post import Messaged
from muster.model.snapshot import Running
from muster.model.units import HOUR, MINUTE
from muster.server.stewardship.telling import of_finding
from muster.server.watching import consequence_of
from muster.steward.find import find
from muster.steward.respond import respond
from muster.steward.rules import Rules
from muster.steward.watch import Watched

_WINDOW_SECONDS = 75 * MINUTE  # somewhat more than the rules look at
_LONG_SECONDS = 3 * HOUR


def notice(past: Past) -> None:
    """One look at what has run for long and uses nothing."""
    rules = Rules()
    suspects = [r for r in past.fold.running.values() if _is_suspect(past, r)]
    found = [finding for r in suspects for finding in find(_watched(past, r), rules, past.now)]
    for step in respond(found, (), rules, past.now).steps:
        event = consequence_of(step, past.now)
        past.note(event)
        _tell(past, event)


def _is_suspect(past: Past, running: Running) -> bool:
    habit = past.kind_of(running.job.id).habit
    return not habit.busy and bool(running.held.gpus_milli) and running.elapsed(past.now) > _LONG_SECONDS


def _watched(past: Past, running: Running) -> Watched:
    entry = past.ledger.entry(running.job.id, running.attempt)
    assert entry is not None
    devices = tuple(held.device for held in entry.devices)
    return Watched(
        job=running.job,
        attempt=running.attempt,
        started_at=running.started_at or running.placed_at,
        held=running.held,
        devices=devices,
        gpu_granted_bytes=(None,) * len(devices),
        gpu_metric=METRIC,
        minutes=minutes_of(entry, past.kind_of(entry.job), past.now, past.now - _WINDOW_SECONDS),
    )


def _tell(past: Past, found: Found) -> None:
    message = of_finding(past.jobs[found.job], found, is_followed=False)
    if message is not None:
        past.note(Messaged(past.now, past.fold.mailboxes.last_number + 1, message))
