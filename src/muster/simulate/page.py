"""Replays as one page that needs nothing else: no network, no script, light or dark.

Each picture opens with a sentence, tells policies apart by colour and line or pattern and word, and
has its numbers in a table below it. All names come from traces, so all are escaped.
"""

import math
from collections.abc import Callable, Sequence
from html import escape

import msgspec
import numpy as np

from muster.model.units import DAY, HOUR, MINUTE, show_seconds
from muster.simulate import measure as figures
from muster.simulate.measure import Curve, Floats, Report, Spread, count, percent
from muster.simulate.records import Replay

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 30, 44
POINTS, TWIN_EVERY = 180, 8  # of a curve: what the eye can tell apart, what one cares to read
COLOURS = 7  # dashes and patterns repeat with another period, so that 35 policies look different
DASHES = ("none", "7 3", "2 2.5", "10 3 2 3", "4 2 1 2")
PATTERNS = (
    '<path d="M0 4H8" stroke-width="8"/>',
    '<path d="M-2 2L2-2M0 8L8 0M6 10L10 6"/>',
    '<path d="M1 2H3M5 6H7" stroke-width="2"/>',
    '<path d="M0 4H8M4 0V8"/>',
    '<path d="M-2 6L2 10M0 0L8 8M6-2L10 2"/>',
)
TIME_UNITS = (  # and the steps that people count them in
    (DAY, "days", (1, 2, 7, 14, 28)),
    (HOUR, "hours", (1, 2, 3, 6, 12)),
    (MINUTE, "minutes", (1, 2, 5, 10, 15, 30)),
    (1.0, "seconds", (1, 2, 5, 10, 15, 30)),
)
CSS = """
:root{--paper:#fff;--ink:#1b1f24;--soft:#5b636d;--rule:#e6e9ed;--wash:#f6f7f9;
--c0:#0072b2;--c1:#d55e00;--c2:#009e73;--c3:#cc79a7;--c4:#e69f00;--c5:#56b4e9;--c6:#1b1f24}
@media (prefers-color-scheme:dark){:root{--paper:#14171b;--ink:#e7eaee;--soft:#9aa4b0;
--rule:#2b3138;--wash:#1b2026;--c0:#56b4e9;--c5:#0072b2;--c6:#f0e442}}
@media (forced-colors:active){:root{--c0:CanvasText;--c1:CanvasText;--c2:CanvasText;
--c3:CanvasText;--c4:CanvasText;--c5:CanvasText;--c6:CanvasText}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:1160px;margin:0 auto;padding:2.5rem 1.25rem 4rem;overflow-wrap:anywhere}
h1{font-size:1rem;margin:0;color:var(--soft)}
h2{font-size:1.05rem;margin:0}
.finding{font-size:1.6rem;line-height:1.35;margin:.4rem 0 .6rem;max-width:46rem;text-wrap:balance}
.soft,figcaption p,caption,summary{color:var(--soft);margin:0}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));
gap:0 3rem;margin:2.75rem 0 .5rem}
figure{display:grid;grid-row:span 4;grid-template:subgrid/minmax(0,1fr);margin:0 0 2.25rem}
figcaption p,.legend,details,table{font-size:.875rem}
.legend{display:flex;flex-wrap:wrap;gap:0 1.25rem;list-style:none;margin:.4rem 0;padding:0}
svg{display:block;width:100%;height:auto}
svg text{font:12px system-ui,sans-serif;fill:var(--soft)}
.key{display:inline-block;vertical-align:-1px;width:28px;height:12px;margin-right:.45rem}
.grid{stroke:var(--rule)}.base{stroke:var(--soft)}.median{stroke:var(--ink);stroke-width:2}
.line{fill:none;stroke-width:1.75;stroke-linejoin:round}
.scroll{overflow-x:auto}
details .scroll{background:var(--wash);padding:.5rem .75rem;margin-top:.35rem;max-height:22rem}
summary{cursor:pointer}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;overflow-wrap:break-word}
caption{text-align:left;padding:.25rem 0}
th,td{padding:.2rem 0 .2rem 1.75rem;text-align:right;font-weight:400;white-space:nowrap}
tr>:first-child{text-align:left;padding-left:0}
thead th{font-weight:600;border-bottom:1px solid var(--soft);white-space:normal;
min-width:4rem;max-width:14rem;vertical-align:bottom}
.heading th{font-weight:600;padding-top:.9rem;border-bottom:1px solid var(--rule)}
td.best{font-weight:650}td.best::before{content:"✓ ";color:var(--c2)}
"""


class Axis(msgspec.Struct, frozen=True):
    """From 0 to ``high``, with marks at humane places, and how to say a value on it."""

    title: str
    high: float
    ticks: list[tuple[float, str]]
    say: Callable[[float], str]


class Lines(msgspec.Struct, frozen=True):
    """One line per policy over the same places; it is not drawn where it is not a number."""

    x: Axis
    y: Axis
    xs: Floats
    ys: list[Floats]


def page(replays: Sequence[Replay]) -> str:
    """The whole page."""
    reports = [figures.measure(replay) for replay in replays]
    title = escape(f"{reports[0].trace} under {', '.join(r.policy for r in reports)}")
    pictures = (_utilisation, _queue, _wait_by_size, _allocation)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none';style-src 'unsafe-inline'">
<title>{title} – Muster simulation</title>
<style>{CSS}</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p class="finding">{escape(finding(reports)).replace(" %", "&nbsp;%")}</p>
<p class="soft">{escape(setting(reports[0]))}</p>
<div class="plots">
{"".join(picture(replays, reports) for picture in pictures)}</div>
{_all_figures(reports)}
</main>
</body>
</html>
"""


def finding(reports: Sequence[Report]) -> str:
    """What the figures say, in one sentence."""
    most = max(reports, key=lambda r: r.finished)
    if not most.finished:
        peak, policy = max((r.gpu_peak or r.cpu_peak or 0.0, r.policy) for r in reports)
        return f"No job finished; at its peak {policy} held {percent(peak)} of the cluster."
    if most.unfinished or len({r.finished for r in reports}) > 1:
        return f"{most.policy} finished {count(most.finished)} of {_jobs(most.jobs)}."
    times = {r.policy: r.completion_seconds for r in reports if r.completion_seconds}
    means = sorted((spread.mean, policy) for policy, spread in times.items())
    (least, best), (longest, worst) = means[0], means[-1]
    said = f"Under {best} the mean job completes in {show_seconds(least)}"
    if show_seconds(least) == show_seconds(longest):
        return f"{said}{', as under every other policy' * (len(reports) > 1)}."
    said += f", {percent(1 - least / longest)} sooner than under {worst}"
    kindest = min(times, key=lambda policy: times[policy].p99)
    return f"{said}." if kindest == best else f"{said}; {kindest} is kinder to the slowest 1 %."


def setting(report: Report) -> str:
    """What was simulated, in one sentence."""
    amount, one = (report.gpus, "GPU") if report.gpus else (report.cpus, "cpu")
    room = f"{amount:,g} {one}" + "s" * (amount != 1)
    nodes = f"{count(report.nodes)} node" + "s" * (report.nodes != 1)
    stopped = "; interrupted, so only a part of it" if report.interrupted else ""
    return f"{_jobs(report.jobs)} on {nodes} with {room}{stopped}."


def _jobs(number: int) -> str:
    return f"{count(number)} job" + "s" * (number != 1)


def _all_figures(reports: Sequence[Report]) -> str:
    body, heading = [], ""
    for row in figures.rows(reports):
        if row.heading != heading:
            heading = row.heading
            span = f'<th colspan="{len(reports) + 1}" scope="rowgroup">{escape(heading)}</th>'
            body.append(f'<tr class="heading">{span}</tr>\n')
        body.append(_row([row.label, *row.cells], row.best))
    keyed = [f"{_swatch(_dash(i))}{escape(r.policy)}" for i, r in enumerate(reports)]
    legend = "✓ marks the best of a row." if len(reports) > 1 else ""
    return f"<section><h2>All figures</h2>{_table(legend, ['', *keyed], body)}</section>"


def _row(cells: Sequence[str], best: frozenset[int] = frozenset()) -> str:
    values = (
        f'<td class="best">{escape(cell)}</td>' if i in best else f"<td>{escape(cell)}</td>"
        for i, cell in enumerate(cells[1:])
    )
    return f'<tr><th scope="row">{escape(cells[0])}</th>{"".join(values)}</tr>\n'


def _table(caption: str, header: Sequence[str], body: Sequence[str]) -> str:
    """A table from ready rows; it scrolls by itself, by keyboard too."""
    head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _utilisation(replays: Sequence[Replay], reports: Sequence[Report]) -> str:
    unit = _unit(replays)
    means = [r.gpu_utilisation if unit == "GPUs" else r.cpu_utilisation for r in reports]
    said = f"Held on average: {_each(reports, means, percent)}."
    x, xs, curves = _over_time(replays)
    ys = [c.held if c else xs * np.nan for c in curves]
    lines = Lines(x, _percent_axis(f"{unit} held (% of all)", 1.0), xs, ys)
    return _line_picture("held", f"{unit} held over time", said, reports, lines)


def _queue(replays: Sequence[Replay], reports: Sequence[Report]) -> str:
    longest = [max((s.waiting for s in r.samples), default=None) for r in replays]
    said = f"Most jobs waiting at once: {_each(reports, longest, count)}."
    x, xs, curves = _over_time(replays)
    ys = [c.waiting if c else xs * np.nan for c in curves]
    highest = max(float(np.nan_to_num(y).max()) for y in ys)
    lines = Lines(x, _axis("jobs waiting", highest, count, steps=(1,), fit=True), xs, ys)
    return _line_picture("queue", "Queue over time", said, reports, lines)


def _over_time(replays: Sequence[Replay]) -> tuple[Axis, Floats, list[Curve | None]]:
    spans = [figures.span(r) for r in replays]
    seconds = max((end - start for start, end in filter(None, spans)), default=0.0)
    xs = (np.arange(POINTS) + 0.5) * seconds / POINTS
    curves = [figures.curve(r, POINTS, seconds) for r in replays]
    return _time_axis("time since the first submission", seconds), xs, curves


def _allocation(replays: Sequence[Replay], reports: Sequence[Report]) -> str:
    unit = _unit(replays)
    found = [figures.allocation(r, 4 * POINTS) for r in replays]
    last = [float(a.held[-1]) if a else None for a in found]
    said = f"Held when the last job had arrived: {_each(reports, last, percent)}."
    xs = np.linspace(0.0, max((a.arrived[-1] for a in found if a), default=0.0), POINTS)
    ys = [np.interp(xs, a.arrived, a.held, 0.0, np.nan) if a else xs * np.nan for a in found]
    x = _percent_axis(f"{unit} asked for so far (% of all)", float(xs[-1]))
    lines = Lines(x, _percent_axis(f"{unit} held (% of all)", 1.0), xs, ys)
    return _line_picture("allocation", "Held against asked for", said, reports, lines)


def _wait_by_size(replays: Sequence[Replay], reports: Sequence[Report]) -> str:
    found = [(c, style) for style, r in enumerate(replays) for c in figures.wait_by_size(r)]
    found.sort(key=lambda pair: (pair[0].order, pair[1]))
    labels = list(dict.fromkeys(c.label for c, _ in found))
    ticks = [(slot + 0.5, label) for slot, label in enumerate(labels)]
    x = Axis(f"{_unit(replays)} asked for by the job", len(labels), ticks, count)
    highest = max((max(c.wait_seconds.mean, c.wait_seconds.median) for c, _ in found), default=0.0)
    y = _time_axis("mean wait", highest, fit=True)
    bars, body = [_patterns(len(replays))], []
    for c, style in found:
        left = labels.index(c.label) + 0.1 + 0.8 * style / len(replays)
        bars.append(_bar(x, y, left, left + 0.8 / len(replays), style, c.wait_seconds))
        told = map(y.say, (c.wait_seconds.mean, c.wait_seconds.median, c.wait_seconds.p99))
        body.append(_row([c.label, reports[style].policy, count(c.jobs), *told]))
    header = ["size", "policy", "jobs", "mean", "median", "99th percentile"]
    said = "Bars are means; the stroke across a bar is the median."
    svg = _svg("wait", "Wait by job size", said, x, y, "".join(bars) if found else "")
    return _figure("Wait by job size", said, reports, _fill, svg, _table("wait", header, body))


def _line_picture(ident: str, heading: str, said: str, reports: Sequence[Report], lines: Lines) -> str:
    paths = (
        f'<path d="{_path(lines, ys)}" {_dash(style)}/>\n'
        for style, ys in enumerate(lines.ys)
        if np.isfinite(ys).any()
    )
    body = []
    for i in range(0, len(lines.xs), TWIN_EVERY):
        heights = ("–" if math.isnan(ys[i]) else lines.y.say(ys[i]) for ys in lines.ys)
        body.append(_row([lines.x.say(lines.xs[i]), *heights]))
    header = [lines.x.title.partition(" (")[0], *(escape(r.policy) for r in reports)]
    svg = _svg(ident, heading, said, lines.x, lines.y, "".join(paths))
    return _figure(heading, said, reports, _dash, svg, _table(lines.y.title, header, body))


def _figure(
    heading: str,
    said: str,
    reports: Sequence[Report],
    look: Callable[[int], str],
    svg: str,
    twin: str,
) -> str:
    """A picture between its sentence and its table."""
    legend = (f"<li>{_swatch(look(i))}{escape(r.policy)}</li>" for i, r in enumerate(reports))
    return f"""<figure>
<figcaption><h2>{heading}</h2><p>{escape(said)}</p></figcaption>
<ul class="legend">{"".join(legend)}</ul>
{svg}
<details><summary>As a table</summary>{twin}</details>
</figure>
"""


def _svg(ident: str, heading: str, said: str, x: Axis, y: Axis, marks: str) -> str:
    """A drawing with its axes; what it shows is said to those who can't see it."""
    if not marks:
        return '<p class="soft">Nothing happened that could be drawn.</p>'
    label = f'role="group" aria-labelledby="{ident}-title {ident}-desc"'
    return f"""<svg viewBox="0 0 {WIDTH} {HEIGHT}" {label}>
<title id="{ident}-title">{heading}</title>
<desc id="{ident}-desc">{escape(said)} The table below has the numbers.</desc>
{_axes(x, y)}
{marks}</svg>"""


def _axes(x: Axis, y: Axis) -> str:
    base, end = HEIGHT - BOTTOM, WIDTH - RIGHT
    drawn = [_text(0, 14, "start", y.title), _text((LEFT + end) / 2, HEIGHT - 6, "middle", x.title)]
    for value, label in y.ticks:
        at = _down(y, value)
        drawn.append(f'<path class="{"grid" if value else "base"}" d="M{LEFT} {at}H{end}"/>')
        drawn.append(_text(LEFT - 8, at + 4, "end", label))
    drawn += [_text(_across(x, value), base + 18, "middle", label) for value, label in x.ticks]
    return "\n".join(drawn)


def _text(x: float, y: float, anchor: str, words: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{words}</text>'


def _across(x: Axis, value: float) -> float:
    return round(LEFT + value / x.high * (WIDTH - LEFT - RIGHT), 1)


def _down(y: Axis, value: float) -> float:
    return round(HEIGHT - BOTTOM - value / y.high * (HEIGHT - TOP - BOTTOM), 1)


def _path(lines: Lines, ys: Floats) -> str:
    places = zip(lines.xs, ys, strict=True)
    drawn = (f"{_across(lines.x, a)} {_down(lines.y, b)}" for a, b in places if math.isfinite(b))
    return "M" + "L".join(drawn)


def _bar(x: Axis, y: Axis, left: float, right: float, style: int, wait: Spread) -> str:
    """One policy's bar among those of a size, with a gap to the next."""
    start, top, median = _across(x, left), _down(y, wait.mean), _down(y, wait.median)
    width, height = _across(x, right) - start - 1.5, HEIGHT - BOTTOM - top
    return (
        f'<rect x="{start}" y="{top}" width="{width:.1f}" height="{height:.1f}" {_fill(style)}/>'
        f'<path class="median" d="M{start} {median}h{width:.1f}"/>\n'
    )


def _patterns(policies: int) -> str:
    patterns = (
        f'<pattern id="p{i}" width="8" height="8" patternUnits="userSpaceOnUse" stroke-width="1.4" '
        f'stroke="var(--c{i % COLOURS})">{PATTERNS[i % len(PATTERNS)]}</pattern>'
        for i in range(policies)
    )
    return f"<defs>{''.join(patterns)}</defs>\n"


def _fill(style: int) -> str:
    return f'fill="url(#p{style})" stroke="var(--c{style % COLOURS})"'


def _dash(style: int) -> str:
    dash = DASHES[style % len(DASHES)]
    return f'class="line" stroke="var(--c{style % COLOURS})" stroke-dasharray="{dash}"'


def _swatch(look: str) -> str:
    """How a policy is drawn, before its name: a line is flat, an area a box."""
    shape = "M1 1H27V11H1Z" if look.startswith("fill") else "M0 6H28"
    drawn = f'<path d="{shape}" {look}/>'
    return f'<svg class="key" viewBox="0 0 28 12" aria-hidden="true">{drawn}</svg>'


def _percent_axis(title: str, high: float) -> Axis:
    return _axis(title, high, percent, 0.01)


def _time_axis(title: str, high: float, *, fit: bool = False) -> Axis:
    """In the largest unit of which there are at least two."""
    known = (unit for unit in TIME_UNITS if high >= 2 * unit[0])
    size, name, steps = next(known, TIME_UNITS[-1])
    return _axis(f"{title} ({name})", high, show_seconds, size, steps, fit=fit)


def _axis(
    title: str,
    high: float,
    say: Callable[[float], str],
    unit: float = 1.0,
    steps: Sequence[int] = (),
    *,
    fit: bool = False,
) -> Axis:
    """Marked at most eight times, in units; it ends at ``high``, or with ``fit`` at a mark."""
    units = high / unit or 1.0
    power = 10 ** math.floor(math.log10(units / 7))
    step = next(s for s in (*steps, power, 2 * power, 5 * power, 10 * power) if units / s <= 7)
    units = step * math.ceil(units / step) if fit else units
    marks = [step * i for i in range(math.floor(units / step + 1e-9) + 1)]
    return Axis(title, units * unit, [(mark * unit, f"{mark:,.9g}") for mark in marks], say)


def _each(reports: Sequence[Report], values: Sequence[float | None], say: Callable[[float], str]) -> str:
    pairs = zip(reports, values, strict=True)
    return ", ".join(f"{r.policy} {'–' if v is None else say(v)}" for r, v in pairs)


def _unit(replays: Sequence[Replay]) -> str:
    return "GPUs" if any(figures.counts_gpus(r) for r in replays) else "cpus"
