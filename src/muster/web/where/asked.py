"""What somebody wants to see of the map, as the address has it."""

import enum
from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec

from muster.layout.geometry import Zoom
from muster.layout.states import State
from muster.model.errors import BadInput
from muster.server.config_values import shown
from muster.web.address import chosen

_MOST_LETTERS = 200
SHORT = {state: state.name.lower() for state in State}  # as in the address and in the picture
_BY_SHORT = {short: state for state, short in SHORT.items()}


class Colour(enum.StrEnum):
    """What colours tell."""

    STATE = "state"
    OWNER = "owner"
    EFFORT = "effort"
    USE = "use"


class Asked(msgspec.Struct, frozen=True):
    """``row``: as its box is called. ``show``: these states; empty: all."""

    row: str | None = None
    rack: str | None = None
    node: str | None = None
    zoom: Zoom | None = None
    find: str = ""
    colour: Colour = Colour.STATE
    show: frozenset[State] = frozenset()
    job: str | None = None

    def url(self, **other: object) -> str:
        """The address of the same with something else."""
        values = {**self._words(), **other}
        said = {name: value for name, value in values.items() if value}
        return f"/where?{urlencode(said)}" if said else "/where"

    def _words(self) -> dict[str, object]:
        return {
            "row": self.row,
            "rack": self.rack,
            "node": self.node,
            "zoom": self.zoom,
            "find": self.find,
            "colour": self.colour if self.colour is not Colour.STATE else "",
            "show": show_words(self.show),
            "job": self.job,
        }


def show_words(states: frozenset[State]) -> str:
    return ",".join(SHORT[state] for state in State if state in states)


def asked(query: Mapping[str, str]) -> Asked:
    """A word that is not known is an error that says which there are."""
    zoom = chosen(query, "zoom", list(Zoom), "")
    return Asked(
        row=query.get("row") or None,
        rack=query.get("rack") or None,
        node=query.get("node") or None,
        zoom=Zoom(zoom) if zoom else None,
        find=query.get("find", "").strip()[:_MOST_LETTERS],
        colour=Colour(chosen(query, "colour", list(Colour), Colour.STATE)),
        show=frozenset(_state(word) for word in query.get("show", "").split(",") if word.strip()),
        job=query.get("job") or None,
    )


def _state(word: str) -> State:
    found = _BY_SHORT.get(word.strip())
    if found is None:
        raise BadInput(f"show has {shown(word)}; what is shown is {_either(list(_BY_SHORT))}")
    return found


def _either(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
