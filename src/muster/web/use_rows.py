"""Use as rows of bars: held against used, all to one scale, with a tick where a team's quota ends. Pure.

A bar is solid for what was used, hatched for what was held and not used, and dashed for what nobody measured:
that is neither. Beyond the tick it is borrowed, which a stripe below it and a word say. Positions are parts
of the width, so that hatching looks the same wherever it stands.
"""

from collections.abc import Iterator, Sequence
from html import escape
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from muster.server.seeing.use_answers import UseNode
from muster.web.sheet import Cell
from muster.web.words import gpu_hours

FEW = 5  # of what is below, that are told at once; the others in one line that opens
_THINNEST = 0.3  # percent of the width: what is there can be seen
_NOBODY = {"team": "in no team", "owner": "nobody", "purpose": "without a purpose", "effort": "in no effort"}


class Amount(msgspec.Struct, frozen=True):
    """Of a resource, times seconds. ``used`` is None where nothing was measured."""

    held: float
    measured: float
    used: float | None
    quota: float | None = None
    borrowed: float = 0.0

    @property
    def share(self) -> float | None:
        """Of what was measured."""
        return None if self.used is None or not self.measured else self.used / self.measured

    @property
    def coverage(self) -> float | None:
        return min(1.0, self.measured / self.held) if self.held else None


class Row(msgspec.Struct, frozen=True):
    """A node of the tree, as it is drawn. ``few`` are the largest below it, ``others`` the rest."""

    node: UseNode
    id: str
    title: str
    url: str
    amount: Amount
    bar: Markup
    is_open: bool
    few: "list[Row]"
    others: "list[Row]"
    others_held: float


def amount_of(node: UseNode, drawn_by: str) -> Amount:
    if drawn_by == "gpu":
        whole = (node.gpu_held_seconds, node.gpu_measured_seconds, node.gpu_used_seconds)
        return Amount(*whole, node.quota_gpu_seconds, node.borrowed_gpu_seconds or 0.0)
    return Amount(node.cpu_held_seconds, node.cpu_measured_seconds, node.cpu_used_seconds)


class Drawing(msgspec.Struct, frozen=True):
    """What all rows have in common: the resource, and the length that is the whole width."""

    drawn_by: str
    scale: float
    opens: bool  # what is below the first level is shown at once

    @classmethod
    def of(cls, top: Sequence[UseNode], drawn_by: str, *, opens: bool) -> "Drawing":
        amounts = [amount_of(node, drawn_by) for node in top]
        return cls(drawn_by, max([max(one.held, one.quota or 0.0) for one in amounts], default=0.0), opens)

    @property
    def unit(self) -> str:
        return "GPU·h" if self.drawn_by == "gpu" else "cpu·h"

    def rows(self, nodes: Sequence[UseNode], path: str = "use", depth: int = 0) -> list[Row]:
        return [self._row(node, f"{path}-{_safe(node)}", depth) for node in nodes]

    def _row(self, node: UseNode, path: str, depth: int) -> Row:
        amount, title = amount_of(node, self.drawn_by), title_of(node)
        below = self.rows(node.children, path, depth + 1)
        few = below if len(below) <= FEW + 1 else below[:FEW]
        return Row(
            node=node,
            id=path,
            title=title,
            url=url_of(node),
            amount=amount,
            bar=bar(amount, self.scale, self.unit, title),
            is_open=self.opens and depth == 0,
            few=few,
            others=below[len(few) :],
            others_held=sum(row.amount.held for row in below[len(few) :]),
        )


def _safe(node: UseNode) -> str:
    """Fit for an attribute: another for every name."""
    return f"{node.kind}-{(node.id or '').encode().hex()[:80]}"


def title_of(node: UseNode) -> str:
    if node.kind == "rest":
        return f"{node.jobs:,} smaller job{'s' * (node.jobs != 1)}"
    if node.kind in ("job", "array"):
        return f"{node.id} {node.name or ''}".strip()
    return node.id or _NOBODY.get(node.kind, "the rest")


def url_of(node: UseNode) -> str:
    """Where there is more about it; empty: nowhere."""
    if node.kind in ("job", "array"):
        return f"/job/{quote(node.id or '', safe='')}"
    return f"/effort/{quote(node.id, safe='')}" if node.kind == "effort" and node.id else ""


# --- Bars -----------------------------------------------------------------------------------------------


def in_words(amount: Amount, unit: str) -> str:
    said = f"{gpu_hours(amount.held)} {unit} held"
    if amount.share is None:
        said += ", use not measured"
    else:
        said += f", {gpu_hours(amount.used)} used, {amount.share:.0%}"
    if amount.quota is not None:
        said += f", quota {gpu_hours(amount.quota)}"
    return f"{said}, {gpu_hours(amount.borrowed)} borrowed" if amount.borrowed else said


def bar(amount: Amount, scale: float, unit: str, title: str) -> Markup:
    inside = "".join(_segments(amount, scale))
    if amount.borrowed and amount.quota is not None:
        inside += _rect("borrowed", amount.quota, amount.borrowed, scale, (14, 4))
    if amount.quota is not None:
        at = f"{_percent(amount.quota, scale):.4g}%"
        inside += f'<line class="tick" x1="{at}" x2="{at}" y1="0" y2="18"/>'
    label = escape(f"{title}: {in_words(amount, unit)}", quote=True)
    return Markup(f'<svg class="usebar" role="img" aria-label="{label}" height="18">{inside}</svg>')


def whole_bar(amount: Amount, capacity: float, unit: str) -> Markup:
    """Of all that there was: used, held and not used, not measured, and free."""
    scale = max(capacity, amount.held)
    inside = _rect("free", 0.0, scale, scale, (1, 26)) + "".join(_segments(amount, scale, (1, 26)))
    free = f"; {gpu_hours(scale - amount.held)} of {gpu_hours(capacity)} free"
    label = escape(f"{in_words(amount, unit)}{free}", quote=True)
    return Markup(f'<svg class="usebar whole" role="img" aria-label="{label}" height="28">{inside}</svg>')


def _segments(amount: Amount, scale: float, place: tuple[int, int] = (2, 12)) -> Iterator[str]:
    used = min(amount.used or 0.0, amount.held)
    measured = min(max(amount.measured, used), amount.held)
    if used:
        yield _rect("used", 0.0, used, scale, place)
    if measured > used:
        yield _rect("idle", used, measured - used, scale, place)
    if amount.held > measured:
        yield _rect("unmeasured", measured, amount.held - measured, scale, place)


def _rect(kind: str, start: float, length: float, scale: float, place: tuple[int, int]) -> str:
    x, width = _percent(start, scale), max(_THINNEST, _percent(length, scale))
    y, height = place
    across = f'x="{min(x, 100 - _THINNEST):.4g}%" width="{width:.4g}%"'
    return f'<rect class="{kind}" {across} y="{y}" height="{height}"/>'


def _percent(amount: float, scale: float) -> float:
    return 100 * min(1.0, max(0.0, amount / scale)) if scale > 0 else 0.0


# --- As a table -----------------------------------------------------------------------------------------

COLUMNS = (
    "level",
    "kind",
    "id",
    "name",
    "owner",
    "jobs",
    "gpu_held_seconds",
    "gpu_measured_seconds",
    "gpu_used_seconds",
    "cpu_held_seconds",
    "cpu_measured_seconds",
    "cpu_used_seconds",
    "quota_gpu_seconds",
    "borrowed_gpu_seconds",
    "defended_by",
    "defended_at",
    "undefended_jobs",
    "review_at",
)


def table_rows(node: UseNode, level: int = 0) -> Iterator[list[Cell]]:
    """From the whole down, each after what it is a part of."""
    said, lost = node.defended, node.undefended
    yield [
        level,
        node.kind,
        node.id,
        node.name,
        node.owner,
        node.jobs,
        node.gpu_held_seconds,
        node.gpu_measured_seconds,
        node.gpu_used_seconds,
        node.cpu_held_seconds,
        node.cpu_measured_seconds,
        node.cpu_used_seconds,
        node.quota_gpu_seconds,
        node.borrowed_gpu_seconds,
        None if said is None else said.by,
        None if said is None else said.at,
        None if lost is None else lost.jobs,
        None if lost is None else lost.review_at,
    ]
    for child in node.children:
        yield from table_rows(child, level + 1)
