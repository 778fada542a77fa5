"""All parts of the steward's work put together: they begin, end and are configured as one."""

from pathlib import Path

from muster.home import Home
from muster.model.stewardship import Subject
from muster.server.commands import Commands
from muster.server.config_tables import Config
from muster.server.http import Route
from muster.server.identity import own_name
from muster.server.people import Person, answers_for
from muster.server.reports import Reports
from muster.server.service import Service
from muster.server.stewardship.adopting import Adoption
from muster.server.stewardship.budgets import Budgets
from muster.server.stewardship.charters import Charters
from muster.server.stewardship.consumers import Gathering
from muster.server.stewardship.costs import CostRoutes
from muster.server.stewardship.dates import Dates
from muster.server.stewardship.effort_routes import EffortRoutes
from muster.server.stewardship.efforts import Efforts
from muster.server.stewardship.exits import Exiting
from muster.server.stewardship.extending import Extending
from muster.server.stewardship.hindsight import LookingBack
from muster.server.stewardship.hindsight_routes import HindsightRoutes
from muster.server.stewardship.post import Post
from muster.server.stewardship.post_routes import PostRoutes
from muster.server.stewardship.review import Reviewing
from muster.server.stewardship.routes_review import ReviewRoutes


class Steward:
    """Efforts, exits, budgets, dates, reviews, messages and hindsight, around one service."""

    def __init__(self, service: Service, config: Config, home: Home, reports: Reports) -> None:
        self._service, self._config = service, config
        self.efforts = Efforts(service, config.attention.efforts)
        self._exiting = Exiting(service, self.efforts, reports)
        self._budgets = Budgets(service, config)
        self._dates = Dates(service)
        self._reviewing = self._review(home.path / "reviews")
        self._post = Post(service, config)
        self._looking_back = LookingBack(service, config.monitor.hindsight_seconds)
        self._post.now_called = self._now_called
        service.budgets, service.views.budget = self._budgets, self._budgets.view_of
        service.reviewing, service.views.review = self._reviewing, self._reviewing.mark_of
        service.post, service.tell = self._post, self._post.tell
        self._last_fact_at = service.fold.now  # before this start

    def _review(self, minutes: Path) -> Reviewing:
        service = self._service
        reviewing = Reviewing(service, self._config.review, Gathering(service), minutes)
        reviewing.present = self._is_present
        reviewing.stand_in = lambda team: answers_for(self._config, team, own_name())
        reviewing.budget_left = self._budget_left
        return reviewing

    def _now_called(self, name: str) -> str:
        return self._service.directory.now_called(name)

    def _is_present(self, owner: str) -> bool:
        return self._service.directory.present(owner)

    def _budget_left(self, subject: Subject) -> float | None:
        """The part of it, if there is one."""
        view = self._budgets.view(subject)
        return None if view is None else 1.0 - view.share

    def begin(self) -> None:
        """Once the service has: what was decided before a crash, and not done, is done."""
        self.efforts.finish()
        self._post.begin()
        self._budgets.begin()
        self._dates.begin()
        self._reviewing.begin(self._last_fact_at)
        self._looking_back.begin(self._last_fact_at)

    async def end(self) -> None:
        self._exiting.end()
        self._reviewing.end()
        self._looking_back.end()
        await self._post.finish()

    def look(self) -> None:
        """Now and then."""
        self._reviewing.look()

    def configure(self, config: Config) -> None:
        self._config = config
        self.efforts.most_under_way = config.attention.efforts
        self._post.configure(config)
        self._budgets.configure(config)
        self._reviewing.set_rules(config.review)

    # --- People -------------------------------------------------------------------------------------

    def questions_for(self, person: Person) -> int:
        return self._post.questions_for(self._now_called(person.name))

    def heard_of(self, person: Person, route: Route) -> None:
        """Jobs report by themselves: that is no word of their owner's."""
        if not route.path.endswith("/report"):
            self._reviewing.heard_of(person.name)

    def table(self, commands: Commands) -> list[Route]:
        """What can be asked of it."""
        service = self._service
        return [
            *EffortRoutes(service, self.efforts).table(),
            *Charters(service, commands).table(),
            *Adoption(service, commands, self.efforts).table(),
            *PostRoutes(service).table(),
            *Extending(service, self._longest).routes(),
            *ReviewRoutes(service, commands).table(),
            *HindsightRoutes(service).table(),
            *CostRoutes(service, self._budgets.prices).table(),
        ]

    def _longest(self, person: Person) -> float | None:
        """That a job of theirs may run."""
        return self._config.limits_of(self._now_called(person.name)).time_most_seconds
