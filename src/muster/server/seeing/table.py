"""All that pictures are drawn from, as routes."""

from muster.server.http import Route
from muster.server.seeing.queue_routes import QueueRoutes
from muster.server.seeing.stack_routes import StackRoutes
from muster.server.seeing.story_routes import StoryRoutes
from muster.server.seeing.time_routes import TimeRoutes
from muster.server.seeing.use_routes import UseRoutes
from muster.server.service import Service


def seeing_table(service: Service) -> list[Route]:
    """What can be asked to draw it."""
    parts = (
        UseRoutes(service),
        QueueRoutes(service),
        StoryRoutes(service),
        TimeRoutes(service),
        StackRoutes(service),
    )
    return [route for part in parts for route in part.table()]
