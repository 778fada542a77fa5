"""What pages work with: the API, asked as whoever looks, and the scene as it is now."""

import platform
from typing import Any
from urllib.parse import quote

from muster.server.http import App
from muster.server.pages import Ground
from muster.server.people import Person
from muster.web.live import Live

_V1 = "/api/v1"


class Desk:
    def __init__(self, api: App, ground: Ground, live: Live) -> None:
        self._api, self.ground, self.live = api, ground, live
        self.seeing = ground.seeing

    def wall(self) -> float:
        return self.ground.service.wall()

    async def get(self, person: Person, path: str, **query: object) -> Any:
        """What the API answers to ``GET /api/v1`` and this path; a ``MusterError`` if it refuses."""
        asked = {name: value for name, value in query.items() if value is not None}
        return await self._api.ask(person, "GET", f"{_V1}{path}", asked)

    async def job(self, person: Person, job_id: str) -> Any:
        return await self.get(person, f"/jobs/{quote(job_id, safe='')}")

    async def about(self, person: Person) -> dict[str, Any]:
        """What every page says: where this is, how it is, and what somebody has to answer."""
        return {
            "health": await self.get(person, "/health"),
            "server": self.ground.config().server.name or self.seeing.layout().site or platform.node(),
            "questions": self._api.questions_of(person),
            "pulse": self.live.pulse(),
        }
