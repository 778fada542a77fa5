// A job's page: the log as it comes, and parts that take longer than the page.

const LAST_BYTES = 65536;
const MOST_LETTERS = 200000;
const SHOW_MS = 250;
const AGAIN_MS = 3000;

// --- Parts that come later -------------------------------------------------------------------------------
// <div id=… data-part="address">: the same element of the page there, once that has an answer.

for (const part of document.querySelectorAll("[data-part]")) load(part);

async function load(part) {
  part.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(part.dataset.part, { headers: { accept: "text/html" } });
    const made = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (answer.ok && made) part.replaceChildren(...made.childNodes);
  } catch {
    // the link in it does the same by hand
  } finally {
    part.removeAttribute("aria-busy");
  }
}

// --- The log ---------------------------------------------------------------------------------------------

// As web/logtext.py has it: no escape sequences, and of a line that was written over the last.
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])/g;
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f]/g;

const readable = (text) =>
  text
    .replace(ESCAPES, "")
    .split("\n")
    .map((line) => line.replace(/\r+$/, "").split("\r").at(-1).replace(CONTROLS, ""))
    .join("\n");

class Follower {
  constructor(pre) {
    this.pre = pre;
    this.says = document.getElementById("log-says");
    this.text = "";
    this.sticks = true;
    this.due = 0;
    pre.scrollTop = pre.scrollHeight;
    pre.addEventListener("scroll", () => this.scrolled());
    document.addEventListener("visibilitychange", () => (document.hidden ? this.aborts?.abort() : this.follow()));
    this.follow();
  }

  scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.pre;
    this.sticks = scrollTop + clientHeight > scrollHeight - 12;
    this.say();
  }

  say(words) {
    this.words = words ?? this.words ?? "";
    if (this.says) this.says.textContent = this.sticks ? this.words : `${this.words}; scroll down to follow it`;
  }

  async follow() {
    if (this.aborts && !this.aborts.signal.aborted) return;
    this.aborts = new AbortController();
    const { signal } = this.aborts;
    const address = new URL(this.pre.dataset.log, location.href);
    address.searchParams.set("follow", "true");
    address.searchParams.set("last_bytes", LAST_BYTES);
    try {
      const answer = await fetch(address, { signal });
      if (!answer.ok) throw new Error(answer.status);
      this.say("live");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      this.text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        this.take(value);
      }
      this.say("this is all of it: the job has ended");
    } catch {
      this.aborts = null;
      if (document.hidden || signal.aborted) return;
      this.say("not live: the server does not answer");
      setTimeout(() => this.follow(), AGAIN_MS);
    }
  }

  take(piece) {
    this.text = (this.text + piece).slice(-MOST_LETTERS);
    if (!this.due) this.due = setTimeout(() => this.show(), SHOW_MS);
  }

  show() {
    this.due = 0;
    const chosen = getSelection();
    if (!chosen.isCollapsed && this.pre.contains(chosen.anchorNode)) {
      this.due = setTimeout(() => this.show(), SHOW_MS); // somebody copies from it
      return;
    }
    this.pre.textContent = readable(this.text);
    if (this.sticks) this.pre.scrollTop = this.pre.scrollHeight;
  }
}

const log = document.querySelector("pre[data-log]");
if (log?.dataset.live !== undefined) new Follower(log);
else if (log) log.scrollTop = log.scrollHeight;
