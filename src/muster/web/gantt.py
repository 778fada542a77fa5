"""A Gantt chart as SVG: a row for each node, GPU, team or owner, and in it who had it when. Pure.

What is over is solid; what runs is solid until now, and from there on, shaded, until it likely ends, with a
thin line to where its limit ends it at the latest; what is planned is dashed, and what was out of service is
crossed. Across, positions are parts of the width; down, they are pixels. So the picture is as wide as there
is room, and letters are as large as others; a name is cut where its bar ends.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from markupsafe import Markup

from muster.model.units import show_count
from muster.server.seeing.time_answers import Bar, Kind, TimeBy, TimeJob, Timeline, TimeRow
from muster.server.seeing.timeline import in_lanes
from muster.web.axis import Tick, ticks
from muster.web.hues import OTHERS, Hues
from muster.web.words import clock, shorten

_LANE, _LEAST_LANE, _ROW_MOST = 17.0, 0.6, 150.0  # how high a lane is, and a row of many
_FEW = 8  # rows, of lanes, that all have room for names
_GAP = 5.0  # between rows
_THIN, _HAIR = 9.0, 3.0  # a lane without room for a name and a strong outline, or for any
_NARROWEST = 800  # pixels that the picture has at least
_LETTER = 6.4  # pixels that one takes, about
_MOST_TICKS = 10
_THINNEST, _NEAR = 0.12, 6  # percent

HOWS = {  # how it went, as hues; the rest is "other"
    "running": (0, "runs"),
    "failed": (1, "failed"),
    "won": (2, "won"),
    "undefended": (3, "nobody defended it"),
    "succeeded": (4, "succeeded"),
    "spent": (5, "out of budget or time"),
    "lost": (6, "lost"),
    "other": (OTHERS, "stopped, moved, not known"),
}
_SAME = {
    "out-of-memory": "failed",
    "node-lost": "failed",
    "timeout": "spent",
    "out-of-budget": "spent",
    "out-of-time": "spent",
}


class Span(msgspec.Struct, frozen=True):
    """A bar, with what is left of it if it runs."""

    bar: Bar
    rest: Bar | None
    lane: int

    @property
    def end(self) -> float:
        return self.bar.end if self.rest is None else self.rest.end


class Drawn(msgspec.Struct, frozen=True):
    labels: Markup
    axis: Markup
    bars: Markup
    keys: list[tuple[int, str]]  # the legend


class _Place(NamedTuple):
    """Where a row is: pixels from the top, its height, and that of a lane."""

    y: float
    height: float
    lane: float


def drawn(time: Timeline, colour: str, zoom: Mapping[str, str]) -> Drawn:
    """``colour``: by team, owner or how. ``zoom``: what an address that shows less of it keeps."""
    rows = [(row, spans_of(row.bars)) for row in time.rows]
    hues = Hues(_held(rows, time, colour)) if colour != "how" else None
    paint = _Paint(time, colour, hues, zoom)
    places, height = _places(rows)
    marks = ticks(time.since, time.until, _MOST_TICKS)
    inside = paint.grid(marks, height) + "".join(
        paint.row(n, row, spans, place)
        for n, ((row, spans), place) in enumerate(zip(rows, places, strict=True))
    )
    seen = {paint.how(span) for _, spans in rows for span in spans if span.bar.kind is not Kind.OUT}
    keys = (
        [(key.hue, key.name or "in no team") for key in hues.keys]
        if hues is not None
        else [HOWS[how] for how in HOWS if how in seen]
    )
    named = 'role="group" aria-label="Bars: arrows go from one to the next, Enter opens it"'
    return Drawn(
        _labels([row for row, _ in rows], places, height, time.by),
        paint.axis(marks),
        Markup(f'<svg class="bars" {named} height="{height:.4g}">{inside}{paint.now(height)}</svg>'),
        keys,
    )


# --- Where things are -----------------------------------------------------------------------------------


def spans_of(bars: Sequence[Bar]) -> list[Span]:
    """What runs and what is left of it are one, and stay in one lane."""
    rests = {(bar.job, bar.attempt): bar for bar in bars if bar.kind is Kind.PREDICTED}
    running = {(bar.job, bar.attempt) for bar in bars if bar.kind is Kind.RUNNING}
    whole: list[tuple[Bar, Bar, Bar | None]] = []  # the lane's, and ours
    for bar in bars:
        key = (bar.job, bar.attempt)
        if bar.kind is Kind.PREDICTED and key in running:
            continue
        rest = rests.get(key) if bar.kind is Kind.RUNNING else None
        whole.append((Bar(bar.start, bar.end if rest is None else rest.end, bar.kind), bar, rest))
    in_lanes([laned for laned, _, _ in whole])
    return sorted((Span(bar, rest, laned.lane) for laned, bar, rest in whole), key=lambda one: one.bar.start)


def _places(rows: Sequence[tuple[TimeRow, Sequence[Span]]]) -> tuple[list[_Place], float]:
    found: list[_Place] = []
    y, rack = 0.0, None
    for row, spans in rows:
        y += _GAP if found and row.rack != rack else 0.0
        rack = row.rack
        lanes = 1 + max((span.lane for span in spans), default=0)
        is_roomy = lanes == 1 or (len(rows) <= _FEW and lanes <= _FEW)
        lane = _LANE if is_roomy else max(_LEAST_LANE, min(11.0, _ROW_MOST / lanes))
        found.append(_Place(y, lanes * lane, lane))
        y += lanes * lane + _GAP
    return found, y + _GAP


def _held(rows: Iterable[tuple[TimeRow, Sequence[Span]]], time: Timeline, colour: str) -> dict[str, float]:
    held: dict[str, float] = {}
    for _, spans in rows:
        for span in spans:
            job = time.jobs.get(span.bar.job or "")
            if job is not None:
                name = job.team if colour == "team" else job.owner
                held[name] = held.get(name, 0.0) + span.end - span.bar.start
    return held


def _labels(rows: Sequence[TimeRow], places: Sequence[_Place], height: float, by: TimeBy) -> Markup:
    inside, rack = [], None
    for row, place in zip(rows, places, strict=True):
        y = place.y + min(place.height, 2 * _LANE) / 2
        if row.rack is not None and row.rack != rack:
            inside.append(f'<text class="rack" x="0" y="{y:.4g}">{escape(shorten(row.rack, 7))}</text>')
            inside.append(f'<path class="between" d="M0 {place.y - _GAP:.4g}h400"/>' if place.y else "")
            rack = row.rack
        name = row.id or f"in no {by}"
        x = 0 if row.rack is None else 44
        shown = shorten(name, 20 if x == 0 else 13)
        inside.append(
            f'<a href="{escape(_row_url(row, by))}" aria-label="{escape(_row_words(row, by))}">'
            f'<text x="{x}" y="{y:.4g}"><title>{escape(name)}</title>{escape(shown)}</text></a>'
        )
    named = 'role="group" aria-label="Rows"'
    return Markup(f'<svg class="rowlabels" {named} height="{height:.4g}">{"".join(inside)}</svg>')


def _row_url(row: TimeRow, by: TimeBy) -> str:
    """Nearer to it: the GPUs of a node, a GPU where it stands, and what a team or owner used."""
    if by is TimeBy.NODE:
        return f"/time?{urlencode({'by': 'gpu', 'node': row.id})}"
    if by is TimeBy.GPU:
        return f"/where?{urlencode({'node': row.node or ''})}"
    return f"/use?{urlencode({'by': by.value, 'group': row.id})}"


def _row_words(row: TimeRow, by: TimeBy) -> str:
    if by is TimeBy.NODE:
        return f"{row.id}: its GPUs over time"
    return f"{row.id}: where it stands" if by is TimeBy.GPU else f"{row.id or f'in no {by}'}: what was used"


# --- What is drawn --------------------------------------------------------------------------------------


class _Paint:
    def __init__(self, time: Timeline, colour: str, hues: Hues | None, zoom: Mapping[str, str]) -> None:
        self._time, self._colour, self._hues, self._zoom = time, colour, hues, zoom

    def _x(self, at: float) -> float:
        since, until = self._time.since, self._time.until
        return 100 * min(1.0, max(0.0, (at - since) / (until - since)))

    def _clock(self, at: float) -> str:
        return clock(at, self._time.now)

    # --- Around it ----------------------------------------------------------------------------------

    def grid(self, marks: Sequence[Tick], height: float) -> str:
        return "".join(
            f'<line class="{"day" if tick.is_day else "grid"}" x1="{self._x(tick.at):.4g}%"'
            f' x2="{self._x(tick.at):.4g}%" y1="0" y2="{height:.4g}"/>'
            for tick in marks
        )

    def axis(self, marks: Sequence[Tick]) -> Markup:
        now = self._now_at()
        words = "".join(self._tick(tick, now) for tick in marks)
        if now is not None:
            words += (
                f'<text class="now" x="{now:.4g}%" y="16">now {escape(self._clock(self._time.now))}</text>'
            )
        return Markup(f'<svg class="timeaxis" aria-hidden="true" focusable="false" height="24">{words}</svg>')

    def _tick(self, tick: Tick, now: float | None) -> str:
        """Its words, unless they would stand in others or outside."""
        x = self._x(tick.at)
        if not 3 <= x <= 96 or (now is not None and abs(x - now) < _NEAR):
            return ""
        kind = "day" if tick.is_day else "hour"
        return f'<text x="{x:.4g}%" y="16" class="{kind}">{escape(tick.words)}</text>'

    def _now_at(self) -> float | None:
        time = self._time
        return self._x(time.now) if time.since <= time.now <= time.until else None

    def now(self, height: float) -> str:
        at = self._now_at()
        return (
            ""
            if at is None
            else f'<line class="nowline" x1="{at:.5g}%" x2="{at:.5g}%" y1="0" y2="{height:.4g}"/>'
        )

    # --- Rows ---------------------------------------------------------------------------------------

    def row(self, number: int, row: TimeRow, spans: Sequence[Span], place: _Place) -> str:
        ground = f'<rect class="ground" x="0" width="100%" y="{place.y:.4g}" height="{place.height:.4g}"/>'
        inside = "".join(self._span(row, span, place) for span in spans)
        thin = " hair" if place.lane < _HAIR else " thin" if place.lane < _THIN else ""
        return f'<g class="row{thin}" id="row-{number}">{ground}{inside}</g>'

    def _span(self, row: TimeRow, span: Span, place: _Place) -> str:
        y, high = place.y + span.lane * place.lane, place.lane - (1 if place.lane > 4 else 0)
        words = escape(self.words(row, span))
        href = escape(self._href(row, span))
        return (
            f'<a class="span" href="{href}" aria-label="{words}"><title>{words}</title>'
            f"{''.join(self._shapes(span, y, high))}</a>{self._name(span, y, high)}"
        )

    def _shapes(self, span: Span, y: float, high: float) -> Iterator[str]:
        bar, hue = span.bar, self.hue(span)
        if bar.kind is Kind.OUT:
            yield self._rect("out", bar.start, bar.end, y, high)
            return
        kind = {Kind.PREDICTED: "planned", Kind.SHORT: "past short"}.get(bar.kind, bar.kind.value)
        yield self._rect(f"{kind} h{hue}{' firm' * bar.firm}", bar.start, bar.end, y, high)
        rest = span.rest if span.rest is not None else bar if bar.kind is Kind.PREDICTED else None
        if span.rest is not None:
            yield self._rect(f"ahead h{hue}", span.rest.start, span.rest.end, y, high)
            yield self._rect("shade", span.rest.start, span.rest.end, y, high)
        if rest is not None and rest.latest is not None and rest.latest > rest.end:
            yield self._limit(rest.end, rest.latest, y, high)

    def _rect(self, kind: str, start: float, end: float, y: float, high: float) -> str:
        x = self._x(start)
        wide = max(_THINNEST, self._x(end) - x)
        return f'<rect class="{kind}" x="{x:.5g}%" width="{wide:.4g}%" y="{y:.4g}" height="{high:.4g}"/>'

    def _limit(self, start: float, end: float, y: float, high: float) -> str:
        x, to, middle = self._x(start), self._x(end), y + high / 2
        cap = f'<line class="limit" x1="{to:.5g}%" x2="{to:.5g}%" y1="{y:.4g}" y2="{y + high:.4g}"/>'
        line = f'<line class="limit" x1="{x:.5g}%" x2="{to:.5g}%" y1="{middle:.4g}" y2="{middle:.4g}"/>'
        return line + (cap if end <= self._time.until else "")

    def _name(self, span: Span, y: float, high: float) -> str:
        """Where so much of it fits that it helps; beside the link, which says it in full."""
        x, wide = self._x(span.bar.start), self._x(span.end) - self._x(span.bar.start)
        letters = wide / 100 * _NARROWEST / _LETTER
        text = self._short(span.bar)
        if span.bar.kind is Kind.OUT or high < _THIN or letters < min(5, len(text) + 1):
            return ""
        size = "" if high > 13 else ' class="small"'
        box = f'x="{x:.5g}%" y="{y:.4g}" width="{wide:.4g}%" height="{high:.4g}"'
        words = f'<text{size} x="4" y="{high / 2 + 0.5:.3g}">{escape(text)}</text>'
        return f'<svg aria-hidden="true" {box}>{words}</svg>'

    def _short(self, bar: Bar) -> str:
        job = self._time.jobs.get(bar.job or "")
        if bar.kind is Kind.SHORT or bar.job is None:
            return f"{bar.count}"
        return f"{bar.job} {shorten(job.name, 60)}" if job is not None else bar.job

    # --- In colours and words -----------------------------------------------------------------------

    def hue(self, span: Span) -> int:
        if self._hues is None:
            return HOWS[self.how(span)][0]
        job = self._time.jobs.get(span.bar.job or "")
        return OTHERS if job is None else self._hues.of(job.team if self._colour == "team" else job.owner)

    def how(self, span: Span) -> str:
        if span.bar.kind in (Kind.RUNNING, Kind.PREDICTED):
            return "running"
        how = _SAME.get(span.bar.how or "", span.bar.how or "")
        return how if how in HOWS else "other"

    def _href(self, row: TimeRow, span: Span) -> str:
        bar = span.bar
        if bar.job is not None:
            return f"/job/{quote(bar.job, safe='')}"
        if bar.kind is Kind.OUT and row.node is not None:
            return f"/where?{urlencode({'node': row.node})}"
        node = {} if row.node is None else {"node": row.node}
        nearer = {"since": f"{bar.start:.0f}", "until": f"{bar.end + 1:.0f}"}
        return f"/time?{urlencode({**self._zoom, **node, **nearer})}"

    def words(self, row: TimeRow, span: Span) -> str:
        bar, where = span.bar, row.id or "in no team"
        when = f"{self._clock(bar.start)}–{self._clock(bar.end)}"
        if bar.kind is Kind.OUT:
            because = f": {shorten(bar.because, 200)}" if bar.because else ""
            return f"{where} was out of service ({bar.how}), {when}{because}"
        if bar.job is None:
            return f"{where}: {show_count(bar.count, 'attempt')} together, {when}; nearer"
        whose = f"job {bar.job}{_of(self._time.jobs.get(bar.job))} on {where}"
        return f"{whose}: {self._course(span, when)}"

    def _course(self, span: Span, when: str) -> str:
        bar = span.bar
        if bar.kind is Kind.PAST:
            return f"{when}, {bar.how or 'over'}"
        if bar.kind is Kind.RUNNING:
            rest = span.rest
            ends = "" if rest is None else f", likely until {self._clock(rest.end)}{self._latest(rest)}"
            return f"runs since {self._clock(bar.start)}{ends}"
        planned = "promised to start by" if bar.firm else "planned to start at"
        return f"{planned} {self._clock(bar.start)}, likely until {self._clock(bar.end)}{self._latest(bar)}"

    def _latest(self, bar: Bar) -> str:
        return "" if bar.latest is None else f", at the latest {self._clock(bar.latest)} by its limit"


def _of(job: TimeJob | None) -> str:
    if job is None:
        return ""
    gpus = f", {job.gpus:g} GPU{'s' * (job.gpus != 1)}" if job.gpus else ""
    team = f" ({shorten(job.team, 60)})" if job.team else ""
    return f" {shorten(job.name, 80)} of {shorten(job.owner or 'nobody', 60)}{team}{gpus}"
