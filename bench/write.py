"""Figures for people: a line each on a terminal, and tables in a page whose prose stays.

A table stands in the page between ``<!-- figures:NAME -->`` and ``<!-- /figures -->``, where NAME
is the figure's name, or several. Tables none of whose figures were measured stay as they are.
"""

import re
from collections.abc import Sequence

from bench.figures import Figure

_SECTION = re.compile(r"(<!-- figures:([^>]*?) -->\n).*?(<!-- /figures -->)", re.DOTALL)
_UNKNOWN = "–"


def line(figure: Figure) -> str:
    """All of a figure in one line."""
    said = f"{figure.name:<22} {figure.variant:<12} {figure.policy:<14} {show(figure.value):>10}"
    said += f" {figure.unit}"
    if figure.sd is not None:
        said += f" ± {show(figure.sd)}"
    if figure.published is not None and figure.ratio is not None:
        said += f", published {show(figure.published)}, ratio {figure.ratio:.4f}"
    beside = (f"{_words(key)} {show(value)}" for key, value in (figure.beside or {}).items())
    return "; ".join([said, *beside])


def rewrite(page: str, figures: Sequence[Figure]) -> str:
    """The page with the tables of these figures."""

    def fill(section: re.Match[str]) -> str:
        opening, names, closing = section.groups()
        rows = [figure for figure in figures if figure.name in names.split()]
        return f"{opening}{table(rows)}{closing}" if rows else section[0]

    return _SECTION.sub(fill, page)


def homeless(page: str, figures: Sequence[Figure]) -> list[str]:
    """Names of figures that no table of the page shows."""
    shown = {name for _, names, _ in _SECTION.findall(page) for name in names.split()}
    return sorted({figure.name for figure in figures} - shown)


def table(figures: Sequence[Figure]) -> str:
    """In Markdown. What all rows have in common is said once, in the head, or not at all."""
    columns = _columns(figures)
    rule = ["---" if head in ("figure", "variant", "policy") else "---:" for head in columns]
    rows = zip(*columns.values(), strict=True)
    return "".join(f"| {' | '.join(row)} |\n" for row in (columns, rule, *rows))


def _columns(figures: Sequence[Figure]) -> dict[str, list[str]]:
    units = {figure.unit for figure in figures}
    value = units.pop() if len(units) == 1 else "value"
    columns = {
        "figure": [f.name for f in figures],
        "variant": [f.variant for f in figures],
        "policy": [f.policy for f in figures],
        "knows durations": [_yes_or_no(f.knows_durations) for f in figures],
        value: [show(f.value) for f in figures],
        "unit": [f.unit for f in figures],
        "±": [show(f.sd) for f in figures],
        "published": [show(f.published) for f in figures],
        "ratio": [_UNKNOWN if f.ratio is None else f"{f.ratio:.4f}" for f in figures],
    }
    if len({f.name for f in figures}) == 1:
        del columns["figure"]
    if value != "value":
        del columns["unit"]
    for key in dict.fromkeys(key for f in figures for key in f.beside or ()):
        columns[_words(key)] = [show((f.beside or {}).get(key)) for f in figures]
    return {head: cells for head, cells in columns.items() if set(cells) != {_UNKNOWN}}


def show(value: float | None) -> str:
    """With as many digits as say something."""
    if value is None:
        return _UNKNOWN
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:.3f}"


def _words(key: str) -> str:
    """``mean_wait_seconds`` → ``mean wait (s)``."""
    return re.sub(r" seconds$", " (s)", key.replace("_", " "))


def _yes_or_no(value: bool | None) -> str:
    return _UNKNOWN if value is None else ("no", "yes")[value]
