"""Parts in the simulated week: long-running work, whose it is, since when, and for how long."""

import msgspec

from muster.demo.work import Kind


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """A kind, whose it is, since when, and how long it works."""

    kind: Kind
    owner: str
    hours_ago: float
    hours: float
    defended_hours_ago: float | None = None
    defence: str = ""


LONG = 400.0  # hours: it outlives the demonstration


def role(name: str, team: str, owner: str, since: float, hours: float, **more: object) -> Role:
    """``since``: hours ago."""
    said = {key: more.pop(key) for key in ("defended_hours_ago", "defence") if key in more}
    kind = Kind(name=name, team=team, owners=(owner,), **{"limit_hours": 240.0, **more})  # type: ignore[arg-type]
    return Role(kind=kind, owner=owner, hours_ago=since, hours=hours, **said)  # type: ignore[arg-type]
