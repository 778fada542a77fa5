"""Colours for names: those who have most get one of their own, with a pattern, and all others share the last.

The colours are Okabe and Ito's; the style sheet has them as ``g0`` to ``g7``, the ground of the
patterns ``h0`` to ``h7`` that ``definitions`` makes. A word always goes with them, in the legend.
"""

from collections.abc import Mapping

import msgspec
from markupsafe import Markup

OTHERS = 7  # the last of the hues
_LINES = (  # over a square of eight
    "",
    "M-1 1l2-2M0 8l8-8M7 9l2-2",
    "M2 2h1.6M6 6h1.6",
    "M-1 7l2 2M0 0l8 8M7-1l2 2",
    "M0 2h8M0 6h8",
    "M0 0l8 8M8 0l-8 8",
    "M2 0v8M6 0v8",
    "M0 4h8M4 0v8",
)


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
    size = 'width="8" height="8" patternUnits="userSpaceOnUse"'
    hues = "".join(
        f'<pattern id="h{hue}" {size}><rect class="g{hue}" width="8" height="8"/>'
        + (f'<path class="over" d="{lines}"/>' if lines else "")
        + "</pattern>"
        for hue, lines in enumerate(_LINES)
    )
    return Markup(f"<defs>{hues}</defs>")
