// What all pages share: the stream, how fresh the page is, tables that follow, forms that keep what was typed, keys.
// Everything works without it, too: pages are whole, and forms are forms.

const body = document.body;
const age = document.getElementById("age");
const LOST_MS = 4000; // without a tick, what is shown is no longer how it is
const FOLLOW_MS = 3000; // tables are fetched anew that often at most
const SLOWLY_MS = 15000; // and that often even if nothing was decided: use changes without a fact
const SPARING = 30; // and so many times as long as the last fetch took: a busy server is asked less

// --- The stream ------------------------------------------------------------------------------------------

let source = null;
let heard = 0; // when the last tick came, by our clock
let at = Number(body.dataset.at);
let facts = Number(body.dataset.facts);
let shownFacts = facts;
let mark = body.dataset.mark;

function listen() {
  source?.close();
  const asked = new URLSearchParams({ since: mark, level: body.dataset.level });
  source = new EventSource(`/live?${asked}`);
  source.addEventListener("tick", (event) => take(event, false));
  source.addEventListener("all", (event) => take(event, true));
}

function take(event, all) {
  const epoch = mark.split("-")[0];
  if (all && event.lastEventId.split("-")[0] !== epoch && body.dataset.level) {
    location.reload(); // another server or another layout: places have other numbers now
    return;
  }
  mark = event.lastEventId;
  const tick = JSON.parse(event.data);
  heard = performance.now();
  at = tick.at;
  facts = tick.facts;
  document.dispatchEvent(new CustomEvent("muster:tick", { detail: { ...tick, all } }));
  showAge();
  follow();
}

function showAge() {
  const silent = performance.now() - heard;
  const live = heard > 0 && silent < LOST_MS;
  document.documentElement.dataset.stream = live ? "live" : heard || performance.now() > LOST_MS ? "lost" : "";
  if (live) age.textContent = `live, ${Math.max(1, Math.round(silent / 1000))} s old`;
  else if (document.documentElement.dataset.stream === "lost") age.textContent = `not live: as of ${clock(at)}`;
}

const clock = (seconds) =>
  new Date(seconds * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });

if (body.dataset.mark) {
  listen();
  setInterval(showAge, 1000);
  document.addEventListener("visibilitychange", () => (document.hidden ? source.close() : listen()));
}

// --- Parts that follow -----------------------------------------------------------------------------------
// <section id=… data-follows>: fetched anew when something happened, and only what differs is exchanged.

let followed = performance.now();
let following = false;
let took = 0; // the last fetch, in milliseconds

async function follow() {
  const parts = document.querySelectorAll("[data-follows]");
  const since = performance.now() - followed;
  const due = since > SPARING * took && (facts !== shownFacts ? since > FOLLOW_MS : since > SLOWLY_MS);
  if (!parts.length || !due || following || document.hidden) return;
  following = true;
  followed = performance.now();
  shownFacts = facts;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (answer.ok) exchange(new DOMParser().parseFromString(await answer.text(), "text/html"), parts);
  } catch {
    // the next tick tries again, and the page says how old it is
  } finally {
    took = performance.now() - followed;
    following = false;
  }
}

function exchange(fresh, parts) {
  for (const old of parts) {
    const made = fresh.getElementById(old.id);
    if (made) morph(old, made);
  }
  const sentence = document.getElementById("sentence");
  const said = fresh.getElementById("sentence");
  if (sentence && said && sentence.textContent !== said.textContent) sentence.textContent = said.textContent;
  document.dispatchEvent(new CustomEvent("muster:followed"));
}

// What somebody is using stays: where the focus is, what is typed, what is opened.
function morph(old, made) {
  if (old.isEqualNode(made) || old.matches("form, [data-keep]")) return;
  const same = old.children.length && made.children.length && old.tagName === made.tagName;
  if (!same) {
    if (!old.contains(document.activeElement)) old.replaceWith(document.adoptNode(made));
    return;
  }
  for (const { name, value } of [...made.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) if (!made.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  morphChildren(old, made);
}

function morphChildren(old, made) {
  const known = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let place = old.firstChild;
  for (const next of [...made.childNodes]) {
    const kept = next.id ? known.get(next.id) : alike(place, next);
    if (!kept) {
      old.insertBefore(document.adoptNode(next), place);
      continue;
    }
    if (kept === place) place = place.nextSibling;
    else old.insertBefore(kept, place);
    if (next.nodeType === Node.ELEMENT_NODE) morph(kept, next);
    else if (kept.nodeValue !== next.nodeValue) kept.nodeValue = next.nodeValue;
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    if (!gone.contains?.(document.activeElement)) gone.remove();
  }
}

const alike = (old, made) =>
  old && old.nodeType === made.nodeType && old.nodeName === made.nodeName && !old.id ? old : null;

// --- Parts that come later -------------------------------------------------------------------------------
// <section id=… data-later=ADDRESS>: takes a moment to work out, so the page doesn't wait for it. It is the part
// of the same id on the page at that address, to which a link leads as long as it isn't here.

const AGAIN_MS = 30000; // it is worked out anew that often at most

async function fetchLater(part) {
  part.fetchedAt = performance.now();
  part.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(part.dataset.later, { headers: { accept: "text/html" } });
    const made = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (made) morphChildren(part, made);
  } catch {
    // the link is still there
  } finally {
    part.removeAttribute("aria-busy");
  }
}

for (const part of document.querySelectorAll("[data-later]")) fetchLater(part);
document.addEventListener("muster:followed", () => {
  for (const part of document.querySelectorAll("[data-later]:not([aria-busy])"))
    if (performance.now() - part.fetchedAt > AGAIN_MS) fetchLater(part);
});

// --- Forms -----------------------------------------------------------------------------------------------

const DONE = "muster:done"; // what the page that comes next says first

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("form.act, form[data-act]")) return;
  event.preventDefault();
  const sure = event.submitter?.dataset.sure;
  if (sure && !confirm(sure)) return;
  const wrong = form.querySelector(".wrong");
  if (wrong) wrong.textContent = "";
  try {
    const answer = await fetch(form.action, {
      method: "POST",
      headers: { accept: "application/json" },
      body: new URLSearchParams(new FormData(form, event.submitter)),
    });
    const said = await answer.json();
    if (!answer.ok) return refuse(form, wrong, said.error);
    sessionStorage.setItem(DONE, form.dataset.done || "Done.");
    location.assign(form.elements.back?.value || location.href);
  } catch {
    refuse(form, wrong, "The server does not answer; nothing was changed that it knows of.");
  }
});

function refuse(form, wrong, sentence) {
  if (wrong) {
    wrong.textContent = sentence;
    (form.querySelector("[name]:not([type=hidden])") ?? wrong).focus();
  } else tell(sentence);
}

let silence = 0;
function tell(sentence) {
  const said = document.getElementById("said");
  said.textContent = sentence;
  clearTimeout(silence);
  silence = setTimeout(() => (said.textContent = ""), 8000);
}

const done = sessionStorage.getItem(DONE);
sessionStorage.removeItem(DONE);
if (done) tell(done);

document.addEventListener("click", (event) => {
  const opens = event.target.closest("[data-opens]");
  if (opens) document.getElementById(opens.dataset.opens)?.showModal();
});

// --- Keys ------------------------------------------------------------------------------------------------

const keys = document.getElementById("keys");
const pages = new Map(
  [...document.querySelectorAll("nav[aria-label=Pages] a")].map((link) => [link.dataset.key, link.href]),
);
let going = false;

document.getElementById("keys-button")?.addEventListener("click", () => keys.showModal());
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  const key = event.key;
  if (going) {
    going = false;
    if (pages.has(key)) location.assign(pages.get(key));
    return;
  }
  if (key === "g") going = true;
  else if (key === "?") keys?.showModal();
  else if (key === "t") document.querySelector("a.twin[href*='.txt']")?.click();
  else if (key === "/") document.getElementById("find")?.focus();
  else return;
  event.preventDefault();
});
