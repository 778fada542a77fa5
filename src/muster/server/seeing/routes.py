"""What can be asked about where things are, and who answers."""

from muster.home import Home
from muster.server.answers_map import MapView, Where
from muster.server.answers_top import Sparks, TopView
from muster.server.http import Call, Route
from muster.server.seeing.mapping import MapQuery, map_view
from muster.server.seeing.processes import Peek
from muster.server.seeing.seeing import Seeing
from muster.server.seeing.top import SparksQuery, Top, TopQuery
from muster.server.seeing.whereabouts import Whereabouts
from muster.server.service import Service


class SeeingRoutes:
    """The handlers."""

    def __init__(self, service: Service, seeing: Seeing, home: Home) -> None:
        self._service, self._seeing = service, seeing
        self.whereabouts = Whereabouts(service, seeing, Peek(home))
        self._top = Top(service, seeing)

    async def map(self, call: Call) -> MapView:
        here, scene = self._seeing.now()
        return map_view(here, scene, call.query, self._service.directory.all_names)

    async def where(self, call: Call) -> Where:
        return await self.whereabouts.of(call.path[0])

    async def top(self, call: Call) -> TopView:
        return self._top.view(call.person, call.query)

    async def sparks(self, call: Call) -> Sparks:
        return await self._top.sparks(call.query)

    def table(self) -> list[Route]:
        whole, one = "The map of the place, and what every GPU does.", "Where a job is."
        frame, sparks = "One frame: the place in glyphs, who holds most.", "What jobs used in the last day."
        return [
            Route("GET", "/api/v1/top", self.top, TopView, frame, query=TopQuery),
            Route("GET", "/api/v1/sparks", self.sparks, Sparks, sparks, query=SparksQuery, errors=(507,)),
            Route("GET", "/api/v1/map", self.map, MapView, whole, query=MapQuery, errors=(404,)),
            Route("GET", "/api/v1/jobs/{id}/where", self.where, Where, one),
        ]
