"""The story of one job: from the journal's facts about it, and from what people said of it."""

import asyncio

import msgspec

from muster.model.errors import BadInput
from muster.model.events import Event
from muster.model.job import JobId
from muster.model.stewardship import of_job
from muster.server import members
from muster.server.answers import StoryLine
from muster.server.http import Call, Route
from muster.server.seeing.story import KINDS, lines_of, sentence_of
from muster.server.service import Service

_MOST_FACTS = 300  # of one job: the last, and the first


class Story(msgspec.Struct):
    """What has happened to a job, in its order."""

    id: str
    sentence: str
    lines: list[StoryLine]
    more: int  # facts between the first and the rest that are left out


class StoryRoutes:
    """The handlers."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def story(self, call: Call) -> Story:
        view = members.view(self._service, call.path[0])
        if "[" in view.id:
            raise BadInput(
                f"{view.id} is several jobs; each has its story, such as {view.id.partition('_')[0]}_1"
            )
        journal, ahead = self._service.journal, self._service.fold.wall_ahead_seconds
        whole = view.id.partition("_")[0]
        said = self._said_of(whole)

        def answer() -> Story:
            facts, count = journal.told_of(view.id, KINDS, _MOST_FACTS)
            more = count - len(facts)
            if whole != view.id:
                facts += journal.told_of(whole, KINDS, _MOST_FACTS)[0]
            lines = lines_of([*facts, *said], ahead)
            return Story(view.id, sentence_of(view.id, lines), lines, more)

        return await asyncio.to_thread(answer)

    def _said_of(self, job_id: JobId) -> list[Event]:
        """What is said of a job or an array as a whole, and is no fact of one job."""
        stewardship, subject = self._service.fold.stewardship, of_job(job_id)
        spending = stewardship.spending
        told = (spending.warned.get(subject), spending.reached.get(subject))
        return [*stewardship.defences.get(subject, ()), *(one for one in told if one is not None)]

    def table(self) -> list[Route]:
        said = "What has happened to it, and who did it."
        return [Route("GET", "/api/v1/jobs/{id}/story", self.story, Story, said, errors=(507,))]
