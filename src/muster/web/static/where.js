// The map lives: each tick changes attributes of the marks that it names. Arrows go from mark to mark, the legend filters.

const STATES = ["working", "idle", "free", "down", "drained", "unknown"];
const WORDS = ["working", "held idle", "free", "down", "drained", "unknown"];
const OTHERS = "c7";
const RETELL_MS = 4000; // what is only read aloud or in a tooltip follows that often
const THINNEST = 1 / 12; // of a bar, as the server draws it
const SVG = "http://www.w3.org/2000/svg";

let map = document.getElementById("map");
const colour = document.getElementById("keys-of-colours")?.dataset.colour ?? "state";
let marks = new Map(); // by number: the elements that show it
let counts = STATES.map(() => 0); // of GPUs in view
let words = new Map(); // by number: what tells of a GPU beside the map
let kinds = new Map(); // of people or efforts that have a colour

// --- Ticks -----------------------------------------------------------------------------------------------

function index() {
  map = document.getElementById("map");
  marks = new Map();
  counts = STATES.map(() => 0);
  words = new Map([...document.querySelectorAll("[data-word]")].map((word) => [word.dataset.word, word]));
  kinds = new Map([...document.querySelectorAll("#keys-of-colours [data-who]")].map((key) => [key.dataset.who, key.dataset.kind]));
  for (const mark of document.querySelectorAll("main [data-n]")) {
    const number = mark.dataset.n;
    if (!marks.has(number)) marks.set(number, []);
    marks.get(number).push(mark);
    if (!map?.contains(mark)) continue;
    if (mark.dataset.k) counted(mark).forEach((many, at) => (counts[at] += many));
    else if (mark.classList.contains("gpu") && !byBars()) counts[STATES.indexOf(mark.dataset.state)] += 1;
  }
}

const byBars = () => map !== null && !map.classList.contains("zoom-node");
const counted = (mark) => mark.dataset.k.split(",").map(Number);

// Of a node or a rack that is one mark: its bar, or its cpus.
const pieces = new WeakMap();
function pieceOf(mark) {
  if (!pieces.has(mark)) pieces.set(mark, mark.querySelector(":scope > .bar, :scope > .cpu"));
  return pieces.get(mark);
}

const stale = new Set(); // marks whose words are no longer true
let telling = 0;

function retell() {
  telling = 0;
  for (const mark of stale) if (mark.isConnected) tellMark(mark);
  stale.clear();
}

function take({ changes, counts: all, sentence }) {
  for (const [number, now] of Object.entries(changes)) {
    for (const mark of marks.get(number) ?? []) {
      if (!Array.isArray(now[0])) drawGpu(mark, now);
      else if (pieceOf(mark)) drawMany(mark, now);
    }
    if (!Array.isArray(now[0])) tellGpu(number, now);
  }
  if (stale.size && !telling) telling = setTimeout(retell, RETELL_MS);
  const whole = document.getElementById("floor")?.dataset.whole === "1";
  tellCounts(whole ? WORDS.map((word) => all[word] ?? 0) : counts);
  if (sentence && whole) setText(document.getElementById("sentence"), sentence);
}

function drawGpu(mark, [state, percent, undefended, ...holders]) {
  const [title, cell, unused] = mark.children;
  const before = mark.dataset.state;
  if (before !== STATES[state]) {
    mark.dataset.state = STATES[state];
    if (map?.contains(mark)) {
      counts[STATES.indexOf(before)] -= 1;
      counts[state] += 1;
      stale.add(mark.parentNode);
    }
  }
  const high = Number(cell.getAttribute("height"));
  set(unused, "height", String(state === 0 && percent >= 0 ? high * (1 - percent / 100) : 0));
  flag(mark, "data-undefended", undefended);
  if (colour !== "state") paint(mark, state < 2 && holders.length ? kindOf(percent, holders[0]) : "");
  const number = mark.id.slice(mark.id.lastIndexOf(".") + 1);
  const used = percent < 0 ? "" : `${percent}% used`;
  const jobs = holders.map(([id, owner]) => `job ${id}, ${owner}`).join("; ");
  title.textContent = [`GPU ${number}`, WORDS[state], used, jobs].filter(Boolean).join(", ");
}

// A node or a rack: a bar of states, or its cpus if it has no GPUs.
function drawMany(mark, [many, percent, undefended, state, held, used]) {
  flag(mark, "data-undefended", undefended);
  const others = mark.dataset.k !== undefined && mark.dataset.k !== many.join(",");
  if (others) {
    counted(mark).forEach((before, at) => (counts[at] += many[at] - before));
    mark.dataset.k = many.join(",");
    stale.add(mark);
  }
  const piece = pieceOf(mark);
  if (piece.classList.contains("cpu")) {
    if (state !== undefined) drawCpus(mark, piece, state, held, used);
  } else if (colour === "state") {
    if (others) segment(piece, STATES.map((kind, at) => [kind, many[at]]));
    veil(piece, many, percent);
  } else if (colour === "use") segment(piece, [[many[0] + many[1] ? stepOf(percent) : "free", 1]]);
}

function drawCpus(mark, cpu, state, held, used) {
  cpu.dataset.state = STATES[state];
  const [ground, part, unused] = cpu.children;
  const wide = (Number(ground.getAttribute("width")) * Math.max(0, Math.min(100, held))) / 100;
  const high = Number(ground.getAttribute("height"));
  set(part, "width", String(wide));
  set(unused, "width", String(wide));
  set(unused, "height", String(used < 0 || held <= 0 ? 0 : high * (1 - Math.min(1, used / held))));
  if (colour === "use") paint(mark, held > 0 ? stepOf(used) : "");
}

function segment(bar, kinds) {
  const shown = kinds.filter(([, many]) => many);
  const total = shown.reduce((sum, [, many]) => sum + many, 0);
  const wide = shown.map(([, many]) => Math.max(THINNEST, many / total));
  const scale = Number(bar.dataset.w) / wide.reduce((sum, one) => sum + one, 0);
  let left = Number(bar.dataset.x);
  shown.forEach(([kind], at) => {
    const piece = bar.children[at] ?? bar.appendChild(bar.children[0].cloneNode());
    set(piece, "class", kind);
    set(piece, "x", left.toFixed(2));
    set(piece, "width", (wide[at] * scale).toFixed(2));
    left += wide[at] * scale;
  });
  while (bar.children.length > Math.max(1, shown.length)) bar.lastChild.remove();
}

// All use is of those that work, which come first; the part that is not used is veiled, from above.
function veil(bar, [works, idle], percent) {
  const [first, unused] = [bar.children[0], bar.nextElementSibling];
  const used = works && percent >= 0 ? Math.min(1, (percent * (works + idle)) / works / 100) : 1;
  set(unused, "width", first.getAttribute("width"));
  set(unused, "height", (Number(first.getAttribute("height")) * (1 - used)).toFixed(2));
}

const stepOf = (percent) => (percent < 0 ? "ux" : `u${Math.min(4, Math.floor(percent / 20))}`);

function kindOf(percent, [, owner, effort]) {
  if (colour === "use") return stepOf(percent);
  const who = colour === "owner" ? owner : effort || "(no effort)";
  return kinds.get(who) ?? OTHERS;
}

function paint(mark, kind) {
  if (kind) set(mark, "data-c", kind);
  else mark.removeAttribute("data-c");
}

const set = (element, name, value) => element.getAttribute(name) !== value && element.setAttribute(name, value);
const flag = (element, name, on) => element.toggleAttribute(name, Boolean(on));
const setText = (element, text) => element && element.textContent !== text && (element.textContent = text);

// --- Words -----------------------------------------------------------------------------------------------

function tellGpu(number, [state, percent, , ...holders]) {
  const word = words.get(number);
  if (!word) return;
  setText(word, WORDS[state]);
  setText(word.nextElementSibling, percent >= 0 ? `${percent}%` : holders.length ? "use not known" : "");
}

function tellMark(mark) {
  let many = STATES.map(() => 0);
  if (mark.dataset.k !== undefined) many = counted(mark);
  else for (const gpu of mark.children) if (gpu.classList.contains("gpu")) many[STATES.indexOf(gpu.dataset.state)] += 1;
  const total = many.reduce((sum, one) => sum + one, 0);
  if (!total) return;
  const parts = WORDS.map((word, at) => (many[at] ? `${many[at]} ${word}` : "")).filter(Boolean);
  const name = mark.getAttribute("aria-label").split(":")[0];
  const said = `${name}: ${total} GPU${total === 1 ? "" : "s"}, ${parts.join(", ")}`;
  set(mark, "aria-label", said);
  setText(mark.firstElementChild, said);
}

function tellCounts(many) {
  STATES.forEach((state, at) => setText(document.querySelector(`[data-count=${state}]`), many[at].toLocaleString("en")));
  if (!map || byBars()) return;
  setText(document.getElementById("undefended"), map.querySelectorAll(".gpu[data-undefended]").length.toLocaleString("en"));
  if (colour === "use") {
    for (const one of document.querySelectorAll("[data-kind-count]"))
      setText(one, map.querySelectorAll(`.gpu[data-c=${one.dataset.kindCount}]`).length.toLocaleString("en"));
  }
}

document.addEventListener("muster:tick", (event) => take(event.detail));
document.addEventListener("muster:followed", () => {
  index();
  rove(current());
});

// --- The legend filters ----------------------------------------------------------------------------------

const keys = [...document.querySelectorAll("a[data-key-state]")];
let shown = new Set(map?.dataset.show?.split(" ") ?? []);

function filter() {
  if (shown.size) map.dataset.show = [...shown].join(" ");
  else delete map.dataset.show;
  for (const key of keys) {
    const on = shown.has(key.dataset.keyState);
    key.dataset.on = !shown.size || on ? "1" : "0";
    if (on) key.setAttribute("aria-current", "true");
    else key.removeAttribute("aria-current");
  }
  history.replaceState(null, "", withShown(location.href));
}

function withShown(address) {
  const url = new URL(address, location.href);
  const words = STATES.filter((state) => shown.has(state)).join(",");
  if (words) url.searchParams.set("show", words);
  else url.searchParams.delete("show");
  return url;
}

for (const key of keys)
  key.addEventListener("click", (event) => {
    if (!map || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const state = key.dataset.keyState;
    if (!shown.delete(state)) shown.add(state);
    if (shown.size === STATES.length) shown.clear();
    filter();
  });

// Other links on the page keep what is shown.
document.addEventListener(
  "click",
  (event) => {
    const link = event.target.closest?.("main a[href^='/where']");
    if (link && !link.dataset.keyState) link.setAttribute("href", withShown(link.getAttribute("href")).toString());
  },
  true,
);

// --- Keys: one stop for the whole map --------------------------------------------------------------------

const stops = () => (map ? [...map.querySelectorAll("a.node, a.rack, a.into")] : []);
const current = () => {
  const all = stops();
  const is = (what) => all.find((one) => one.matches(what));
  return is("[tabindex='0']") ?? is("[aria-current]") ?? is("[data-hit].node, [data-hit].rack") ?? is(".node, .rack") ?? all[0];
};

function rove(to) {
  const scroll = map?.querySelector(".scroll");
  if (!to || !scroll) return;
  scroll.removeAttribute("tabindex"); // its marks can be reached, and scroll into view
  for (const one of stops()) set(one, "tabindex", one === to ? "0" : "-1");
}

const AHEAD = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// The nearest that way among those at the same height, or above one another; if there is none, the nearest.
function next(from, [right, down]) {
  const here = from.getBoundingClientRect();
  let best = null;
  let least = Infinity;
  for (const one of stops()) {
    if (one === from) continue;
    const box = one.getBoundingClientRect();
    const ahead = middleOf(box, right, down) - middleOf(here, right, down);
    const aside = Math.abs(middleOf(box, down, right) - middleOf(here, down, right));
    const inLine = 2 * aside < (right ? here.height + box.height : here.width + box.width);
    const far = ahead + 2 * aside + (inLine ? 0 : 1e6);
    if (ahead > 1 && far < least) {
      least = far;
      best = one;
    }
  }
  return best;
}

const middleOf = (box, across, along) => (box.x + box.width / 2) * across + (box.y + box.height / 2) * along;

document.addEventListener(
  "keydown",
  (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, textarea, select, dialog")) return;
    if (event.key === "/") {
      const find = document.getElementById("map-find");
      if (!find) return;
      find.focus();
      find.select();
    } else if (event.key === "Escape" && map) {
      sessionStorage.setItem("muster:map", "1");
      location.assign(withShown(map.dataset.out));
    } else if (AHEAD[event.key] && event.target.closest?.("#map")) {
      const to = next(current(), AHEAD[event.key]);
      if (to) {
        rove(to);
        to.focus();
        to.scrollIntoView({ block: "nearest", inline: "nearest" });
      }
    } else {
      if (event.key === "Enter" && event.target.closest?.("#map a")) sessionStorage.setItem("muster:map", "1");
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  },
  true,
);

index();
rove(current());
if (sessionStorage.getItem("muster:map")) {
  sessionStorage.removeItem("muster:map");
  current()?.focus();
}
