"""What owners are told of findings, and of what was mended by itself."""

from muster.model.events import Found
from muster.model.job import Job
from muster.model.message import Message
from muster.model.stewardship import of_job
from muster.server.stewardship.writing import MENDED


def owner_of(job: Job) -> str:
    """Who answers for it."""
    return job.charter.owner or job.owner


def of_finding(job: Job, found: Found, *, is_followed: bool) -> Message | None:
    """What the owner is told; None if it is only noted. ``is_followed``: unless something changes, by an act.

    A warning asks: is it needed still? It can't wait if an act follows, and neither can what stands still and
    holds its seats.
    """
    if found.act == "note":
        return None
    action = {"warn": f"muster stop {job.id}", "suspend": f"muster resume {job.id}"}.get(found.act)
    return Message(
        to=owner_of(job),
        about=of_job(job.id),
        kind=kind_of(found.kind),
        sentence=f"job {job.id} {job.name}: {found.sentence}",
        action=action or f"muster show {job.id}",
        asks=found.act != "stop",
        urgent=found.act == "suspend" or (found.act == "warn" and is_followed),
    )


def kind_of(finding: str) -> str:
    """Each kind of finding is a question of its own."""
    return f"finding:{finding}"


def of_mending(job: Job, because: str) -> Message:
    """It is counted in the digest: nobody has to do anything."""
    return Message(
        to=owner_of(job),
        about=of_job(job.id),
        kind=MENDED,
        sentence=f"job {job.id} {job.name}: {because}",
        action=f"muster show {job.id}",
    )
