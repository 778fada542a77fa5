"""Whether a page offers to act: by the same rule by which the API lets somebody, who decides in the end."""

from muster.server.people import Person, may_act_on
from muster.web.desk import Desk


def may_act(desk: Desk, person: Person, owner: str, team: str, answers: str | None = None) -> bool:
    return may_act_on(person, owner, team, desk.ground.service.fold.tenancy, answers)
