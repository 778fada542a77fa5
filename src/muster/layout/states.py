"""What a GPU on the map is doing, and how that looks: colour, pattern, glyph and word, always together.

The colours are those of Okabe and Ito, which people who see few colours can tell apart.
"""

import enum

import msgspec


class State(enum.StrEnum):
    WORKING = "working"
    IDLE = "held idle"
    FREE = "free"
    DOWN = "down"
    DRAINED = "drained"
    UNKNOWN = "unknown"  # never drawn as free


class Look(msgspec.Struct, frozen=True):
    """``pattern`` is the name of one in the drawing's definitions, or nothing."""

    glyph: str
    colour: str
    pattern: str = ""
    dashed: bool = False


class Doing(msgspec.Struct, frozen=True):
    """One GPU now. ``share``: how much of it was truly used, None if that is not known."""

    state: State = State.UNKNOWN
    share: float | None = None
    undefended: bool = False
    words: str = ""  # more about it: whose job, since when


LOOKS = {
    State.WORKING: Look("■", "#0072B2"),
    State.IDLE: Look("▨", "#E69F00", pattern="hatched"),
    State.FREE: Look("□", "none"),
    State.DOWN: Look("✕", "#D55E00", pattern="crossed"),
    State.DRAINED: Look("◌", "#999999", pattern="dotted"),
    State.UNKNOWN: Look("?", "none", dashed=True),
}
UNDEFENDED = "#CC79A7"  # a mark on any state
HUES = (  # for people and efforts: the first of many, and the last for all others
    Look("1", "#56B4E9"),
    Look("2", "#E69F00", pattern="hatched"),
    Look("3", "#009E73", pattern="dotted"),
    Look("4", "#CC79A7", pattern="back"),
    Look("5", "#0072B2", pattern="level"),
    Look("6", "#F0E442", pattern="crossed"),
    Look("7", "#D55E00", pattern="upright"),
    Look("…", "#BBBBBB", pattern="checked"),
)
_HEIGHTS = "▁▂▃▄▅▆▇█"


def use_glyph(doing: Doing) -> str:
    """As high as what was truly used; what is not held, or not known, keeps its own."""
    if doing.state is State.FREE:
        return "·"
    if doing.share is None or doing.state not in (State.WORKING, State.IDLE):
        return LOOKS[doing.state].glyph
    return _HEIGHTS[min(len(_HEIGHTS) - 1, int(max(0.0, doing.share) * len(_HEIGHTS)))]
