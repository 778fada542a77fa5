"""At the door: who answers for a job, and whether it passes muster.

The judging is the steward's (``steward.passing``). Here are the facts that it needs: the policy of the team,
the effort that the job is part of, and whether its owner is there.
"""

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from muster.model.charter import Charter
from muster.model.errors import BadInput
from muster.model.job import Job
from muster.model.message import Message
from muster.model.stewardship import Effort, of_effort, of_job
from muster.server.config_tables import Config
from muster.server.config_values import nearest, shown
from muster.server.people import Directory, Person
from muster.steward.passing import Judgement, judge
from muster.store.stewardship import Stewardship


def with_owner(job: Job, person: Person, directory: Directory) -> Job:
    """The job, with who answers for it by their present name. Whoever is not there can't be named."""
    owner = present_owner(job.charter.owner or job.owner, person, directory)
    return replace(job, charter=replace(job.charter, owner=owner))


def present_owner(owner: str, person: Person, directory: Directory) -> str:
    """What they are called now, if they are there to answer for something."""
    if not person.is_called(owner) and not directory.present(owner):
        raise BadInput(f"owner: {_absent(owner, directory)}")
    return directory.now_called(owner)


def _absent(name: str, directory: Directory) -> str:
    if directory.has_left(name):
        return f"{shown(name)} has left; name somebody who is here to answer for it"
    known = directory.known()
    hint = f"; {nearest(name, known)}" if known else ", neither in the configuration nor on this machine"
    return f"there is nobody called {shown(name)} who could answer for it{hint}"


def judged(
    job: Job, config: Config, directory: Directory, said: Stewardship, *, attended: bool = False
) -> Judgement:
    """How the job stands, as it was asked for."""
    return judge(
        job,
        config.require_of(job.team),
        effort=_effort(job, directory, said),
        is_owned=not directory.has_left(job.charter.owner or job.owner),
        attended=attended,
    )


def _effort(job: Job, directory: Directory, said: Stewardship) -> Charter | None:
    """The charter of the open effort that it is part of; an owner who has left owns nothing."""
    effort = said.efforts.get(job.effort) if job.effort else None
    if effort is None or not effort.is_open:
        return None
    return replace(effort.charter, owner=None if directory.has_left(effort.owner) else effort.owner)


def named_for_effort(person: Person, effort: Effort) -> Iterator[Message]:
    """Likewise who was given an effort."""
    if not person.is_called(effort.owner):
        yield Message(
            to=effort.owner,
            about=of_effort(effort.name),
            kind="named",
            sentence=f"{person.name} named you to answer for effort {effort.name}: {effort.charter.purpose}",
            action=f"muster effort show {effort.name}",
        )


def tell_named(tell: Callable[[Message], None], person: Person, jobs: Iterable[Job]) -> None:
    for message in named(person, jobs):
        tell(message)


def named(person: Person, jobs: Iterable[Job]) -> Iterator[Message]:
    """Who was named to answer for somebody else's jobs is told so, once for all that came together."""
    by_owner: dict[str, list[Job]] = {}
    for job in jobs:
        if job.charter.owner is not None and not person.is_called(job.charter.owner):
            by_owner.setdefault(job.charter.owner, []).append(job)
    for owner, theirs in by_owner.items():
        first = theirs[0]
        what = f"job {first.id} {first.name}"
        if len(theirs) > 1:
            what = f"{len(theirs):,} jobs, {first.id} to {theirs[-1].id}"
        purpose = f": {first.charter.purpose}" if first.charter.purpose else ""
        yield Message(
            to=owner,
            about=of_job(first.id),
            kind="named",
            sentence=f"{person.name} named you to answer for {what}{purpose}",
            action=f"muster show {first.id}",
        )
