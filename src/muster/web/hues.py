"""Colours for names: those who have most get one of their own, with a pattern, and all others share the last.

The colours and patterns are the map's, ``hue-0`` to ``hue-7``. A word always goes with them, in the legend.
"""

from collections.abc import Mapping

import msgspec
from markupsafe import Markup

from muster.layout.states import HUES
from muster.layout.svg_marks import hue_definitions

OTHERS = len(HUES) - 1


class Key(msgspec.Struct, frozen=True):
    """A line of the legend."""

    hue: int
    name: str


class Hues:
    """Who has which."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        """``seconds``: how much each has; who has most comes first, and who has as much, by name."""
        ranked = sorted(seconds, key=lambda name: (-seconds[name], name))
        # One that would be the only other has the last for itself.
        own = ranked if len(ranked) <= OTHERS + 1 else ranked[:OTHERS]
        self._of = {name: hue for hue, name in enumerate(own)}
        self.keys = [Key(hue, name) for hue, name in enumerate(own)]
        rest = ranked[len(own) :]
        if rest:
            self.keys.append(Key(OTHERS, f"{len(rest)} others"))

    def of(self, name: str) -> int:
        return self._of.get(name, OTHERS)


def definitions() -> Markup:
    return Markup(hue_definitions())
