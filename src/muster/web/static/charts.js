// Charts: <figure class="chart" data-chart='…'> with a <div class="plot" data-keep> in it becomes a uPlot.
//
// The attribute is JSON, as web/charts.py makes it:
//   at      [seconds since the epoch, in order]
//   series  [{label, values: [number or null, one for each moment],
//             how: "line" (as is usual), "steps", "filled" (used) or "hatched" (held; comes before what is used)}]
//   marks   [{label, y: a height or x: a moment, tone: "won", "lost" or "limit" (as is usual)}]: lines across
//   unit    "" (as is usual), "%" (values are parts of 1) or "bytes"
//   low, high  what it spans at least; without: as the values do
// It is drawn anew when the attribute changes (muster:followed), with the width, and with the colour scheme.
// All charts of a page share their cursor. Words and a table beside it say the same to who sees no canvas.

const HEIGHT = 200;
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3], [14, 4], [4, 7]];
const SI = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
const POWERS = Array.from({ length: 60 }, (_, n) => 2 ** n);
const drawn = new Map(); // by figure: what it was drawn from, the spec as it is now, the plot

const two = (n) => String(n).padStart(2, "0");
const day = (d) => d.toLocaleDateString([], { day: "numeric", month: "short" });

function clock(seconds, step) {
  const d = new Date(seconds * 1000);
  if (step >= 86400 || (d.getHours() + d.getMinutes() + d.getSeconds() === 0 && step >= 60)) return day(d);
  return `${two(d.getHours())}:${two(d.getMinutes())}${step < 60 ? `:${two(d.getSeconds())}` : ""}`;
}

function amount(value, unit) {
  if (value == null) return "–";
  if (unit === "%") return `${+(value * 100).toPrecision(3)} %`;
  if (unit === "bytes") {
    const [size, name] = SI.find(([size]) => Math.abs(value) >= size) ?? SI.at(-1);
    return `${+(value / size).toPrecision(3)} ${name}`;
  }
  return String(+value.toPrecision(4));
}

// --- Looks -----------------------------------------------------------------------------------------------

function looksOf(figure) {
  const style = getComputedStyle(figure);
  const of = (name) => style.getPropertyValue(name).trim();
  return {
    font: `12px ${style.fontFamily}`,
    ink: of("--ink"), soft: of("--soft"), line: of("--line"), paper: of("--paper"),
    series: [1, 2, 3, 4, 5, 6].map((n) => of(`--chart-${n}`)),
    used: of("--chart-used"), held: of("--chart-held"),
    won: of("--chart-won"), lost: of("--chart-lost"), limit: of("--chart-limit"),
  };
}

function hatched(colour) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const ctx = tile.getContext("2d");
  ctx.strokeStyle = colour;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  for (const x of [-8, 0, 8]) {
    ctx.moveTo(x, 8);
    ctx.lineTo(x + 8, 0);
  }
  ctx.stroke();
  return ctx.createPattern(tile, "repeat");
}

function seriesOf(one, place, looks, unit, fewPoints) {
  const how = one.how ?? "line";
  const stepped = how !== "line";
  const colour = how === "hatched" ? looks.held : how === "filled" ? looks.used : looks.series[place % 6];
  return {
    label: one.label.length > 40 ? `${one.label.slice(0, 39)}…` : one.label,
    stroke: colour,
    width: how === "hatched" ? 1 : 2,
    dash: how === "line" || how === "steps" ? DASHES[place % DASHES.length] : how === "hatched" ? [4, 3] : [],
    fill: how === "hatched" ? hatched(colour) : how === "filled" ? (colour.startsWith("#") ? `${colour}55` : colour) : undefined,
    paths: stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
    points: { show: fewPoints && !stepped, size: 5 },
    value: (_, v) => amount(v, unit),
  };
}

// --- Lines across ----------------------------------------------------------------------------------------

function drawMarks(u, state) {
  const { ctx, bbox } = u;
  const { looks, spec } = state;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.font = `${12 * ratio}px ${looks.font.slice(5)}`;
  ctx.lineWidth = 1.5 * ratio;
  let level = 0;
  let upright = 0;
  for (const mark of spec.marks ?? []) {
    ctx.strokeStyle = ctx.fillStyle = looks[mark.tone ?? "limit"];
    ctx.setLineDash(mark.tone === "won" ? [6 * ratio, 3 * ratio] : [2 * ratio, 3 * ratio]);
    if (mark.y != null) horizontal(u, mark, looks, ratio, level++);
    else vertical(u, mark, looks, ratio, upright++);
  }
  ctx.restore();
}

// Labels stand at the left and at the right in turn: lines may lie close together.
function horizontal(u, mark, looks, ratio, place) {
  const { ctx, bbox } = u;
  const at = u.valToPos(mark.y, "y", true);
  const bottom = bbox.top + bbox.height;
  const beyond = at < bbox.top ? "↑ " : at > bottom ? "↓ " : "";
  const y = Math.min(Math.max(at, bbox.top + 1), bottom - 1);
  if (!beyond) stroke(ctx, bbox.left, y, bbox.left + bbox.width, y);
  const left = place % 2 === 0;
  ctx.textAlign = left ? "left" : "right";
  const x = left ? bbox.left + 6 * ratio : bbox.left + bbox.width - 6 * ratio;
  const above = y - bbox.top > 18 * ratio;
  ctx.textBaseline = above ? "bottom" : "top";
  words(ctx, beyond + mark.label, x, above ? y - 3 * ratio : y + 3 * ratio, 0.6 * bbox.width, looks);
}

function vertical(u, mark, looks, ratio, place) {
  const { ctx, bbox } = u;
  const x = u.valToPos(mark.x, "x", true);
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  stroke(ctx, x, bbox.top, x, bbox.top + bbox.height);
  const right = x < bbox.left + bbox.width / 2;
  ctx.textAlign = right ? "left" : "right";
  ctx.textBaseline = "bottom";
  const room = (right ? bbox.left + bbox.width - x : x - bbox.left) - 10 * ratio;
  words(ctx, mark.label, x + (right ? 5 : -5) * ratio, bbox.top + bbox.height - (4 + 15 * (place % 4)) * ratio, room, looks);
}

function stroke(ctx, x1, y1, x2, y2) {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}

// Text with a rim of paper around it, cut to the room that there is.
function words(ctx, text, x, y, room, looks) {
  let shown = text;
  while (shown.length > 4 && ctx.measureText(shown).width > room) shown = `${shown.slice(0, Math.floor(shown.length * 0.85) - 1)}…`;
  ctx.save();
  ctx.setLineDash([]);
  ctx.lineJoin = "round";
  ctx.lineWidth *= 3;
  ctx.strokeStyle = looks.paper;
  ctx.strokeText(shown, x, y);
  ctx.fillText(shown, x, y);
  ctx.restore();
}

// --- Drawing ---------------------------------------------------------------------------------------------

function optionsOf(state, width) {
  const { spec, looks } = state;
  const axis = { stroke: looks.soft, font: looks.font, grid: { stroke: looks.line, width: 1 }, ticks: { stroke: looks.line, width: 1 } };
  const few = spec.at.length <= 40;
  return {
    width,
    height: HEIGHT,
    padding: [8, 28, 0, 0],
    cursor: { sync: { key: "muster" }, drag: { x: false, y: false }, points: { size: 6 } },
    legend: { markers: { width: 2, dash: (u, i) => (u.series[i].dash?.length ? "dashed" : "solid") } },
    scales: { x: { time: true, range: (_, low, high) => spanOf(state.spec, low, high) }, y: { range: (_, low, high) => heightOf(state.spec, low, high) } },
    axes: [
      { ...axis, space: 70, values: (_, splits, __, ___, step) => splits.map((at) => clock(at, step)) },
      { ...axis, size: (_, values) => 16 + 7.2 * Math.max(3, ...(values ?? []).map((v) => v.length)), values: (_, splits) => splits.map((v) => amount(v, state.spec.unit)), incrs: spec.unit === "bytes" ? POWERS : undefined },
    ],
    series: [
      { label: "at", value: (_, at) => (at == null ? "–" : `${day(new Date(at * 1000))} ${clock(at, 1)}`) },
      ...spec.series.map((one, place) => seriesOf(one, place, looks, spec.unit, few)),
    ],
    hooks: { draw: [(u) => drawMarks(u, state)] },
  };
}

// All moments, and what is expected at a later one if that is not too far off.
function spanOf(spec, low, high) {
  low ??= spec.at[0] ?? 0;
  high ??= spec.at.at(-1) ?? low;
  const moments = (spec.marks ?? []).filter((mark) => mark.x != null).map((mark) => mark.x);
  const near = moments.filter((x) => x > high && x - high < 1.5 * Math.max(high - low, 60));
  const last = Math.max(high, ...near);
  return last > low ? [low, last + (near.length ? 0.03 * (last - low) : 0)] : [low - 30, low + 30];
}

function heightOf(spec, low, high) {
  const from = spec.low ?? low ?? 0;
  const to = spec.high ?? high ?? 1;
  return to > from ? [from, to] : [from - 1, to + 1];
}

const dataOf = (spec) => [spec.at, ...spec.series.map((one) => one.values)];
const shapeOf = (spec) => JSON.stringify([spec.unit, spec.series.map((one) => [one.label, one.how]), spec.at.length <= 40]);

function draw(figure, anew = false) {
  const text = figure.dataset.chart;
  const before = drawn.get(figure);
  if (before && before.text === text && !anew) return;
  const spec = JSON.parse(text);
  if (before && !anew && shapeOf(before.spec) === shapeOf(spec)) {
    Object.assign(before, { text, spec });
    before.plot.setData(dataOf(spec));
    return;
  }
  const place = figure.querySelector(".plot");
  const width = Math.floor(place.clientWidth);
  if (!width) return; // in something that is closed: drawn when it opens
  before?.plot.destroy();
  const state = { text, spec, looks: looksOf(figure) };
  state.plot = new uPlot(optionsOf(state, width), dataOf(spec), place);
  drawn.set(figure, state);
}

const sizes = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const state = drawn.get(target.parentElement);
    const width = Math.floor(contentRect.width);
    if (!state) draw(target.parentElement);
    else if (width && width !== state.plot.width) state.plot.setSize({ width, height: HEIGHT });
  }
});

function drawAll(anew = false) {
  for (const [figure, state] of drawn) {
    if (figure.isConnected) continue;
    state.plot.destroy();
    drawn.delete(figure);
  }
  for (const figure of document.querySelectorAll("figure[data-chart]")) {
    draw(figure, anew);
    sizes.observe(figure.querySelector(".plot"));
  }
}

drawAll();
document.addEventListener("muster:followed", () => drawAll());
for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"])
  matchMedia(query).addEventListener("change", () => drawAll(true));
