"""The app: keys, and a thread that asks the server while another draws.

All that is drawn is a ``frame``. What people do goes to the API in their name, as the command line would, and
what is refused is a sentence at the foot.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from msgspec.structs import replace
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Click, Key, MouseScrollDown, MouseScrollUp, Resize
from textual.widgets import Input

from muster.client import Client
from muster.model.errors import MusterError
from muster.tui.details import details, refused
from muster.tui.frame import Frame, frame
from muster.tui.help import helped
from muster.tui.looking import Looking, about
from muster.tui.painting import Drawn
from muster.tui.screens import Answers, Ask, Page
from muster.tui.seen import JOBS, MAP, ORDERS, QUEUE, REVIEW, USE, Gaze, Seen, rows_of
from muster.tui.spans import Line
from muster.tui.targets import Target, target_of

View = dict[str, Any]
_ANSWER_SECONDS = 10.0
_QUIET_SECONDS = 5.0  # after which a server that says nothing is not live
_MORE_ROWS = 50
_MOST_ROWS = 1000
_PLACES = {"w": MAP, "q": QUEUE, "r": REVIEW, "u": USE, "j": JOBS}
_STEPS = {
    "up": -1,
    "down": 1,
    "k": -1,
    "j": 1,
    "pageup": -15,
    "pagedown": 15,
    "home": -_MOST_ROWS,
    "end": _MOST_ROWS,
}
_NAMED = frozenset({"enter", "escape", *_STEPS})


class TopApp(App[None]):
    """``muster top``."""

    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen, Drawn, Input, #ask { background: ansi_default; color: ansi_default; }
    Drawn { scrollbar-size: 0 0; }
    #filter { dock: bottom; height: 1; border: none; display: none; }
    Ask, Page { align: center middle; }
    #ask { width: 76; max-width: 95%; height: auto; border: round ansi_yellow; padding: 0 1; }
    #ask Input { border: round ansi_blue; }
    #wrong { color: ansi_red; }
    #page { width: 95%; height: 90%; border: round ansi_blue; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", "quit", priority=True, show=False)]

    def __init__(
        self,
        narrowed: dict[str, object],
        interval_seconds: float,
        limit: int | None,
        connect: Callable[[], Client] | None = None,
    ) -> None:
        super().__init__(ansi_color=True)
        self._narrowed, self._interval_seconds, self._most = narrowed, interval_seconds, limit or _MOST_ROWS
        self._connect = connect or (lambda: Client(timeout_seconds=_ANSWER_SECONDS))
        self.gaze = Gaze()
        self.seen: Seen | None = None
        self._limit = min(self._most, _MORE_ROWS)
        self._frame = Frame([])
        self._drawn = Drawn(id="frame")
        self._words = Input(id="filter", placeholder="words in id, name, owner, team, effort, purpose, node")
        self._chosen: str | None = None  # whom the cursor follows, once somebody has moved it
        self._prefix = ""
        self._wake, self._ended = threading.Event(), threading.Event()
        self._must_forget = False
        self._page_of: Target | None = None

    def compose(self) -> ComposeResult:
        yield self._drawn
        yield self._words

    def on_mount(self) -> None:
        self._drawn.focus()
        self.run_worker(self._follow, thread=True, exclusive=True, group="follow")
        self.set_interval(1.0, self._draw)

    def on_unmount(self) -> None:
        self._ended.set()
        self._wake.set()

    # --- Following ----------------------------------------------------------------------------------

    def _follow(self) -> None:
        """In a thread: asks, hands over, waits; sooner if somebody looks elsewhere."""
        with self._connect() as client:
            looking = Looking(client, **self._narrowed)
            while not self._ended.is_set():
                self._wake.clear()
                if self._must_forget:
                    self._must_forget = False
                    looking.forget()
                try:
                    seen = looking.look(self.gaze, self.size.width, self.size.height, self._limit)
                except MusterError as error:
                    self._told(lambda said=str(error): self.exit(return_code=1, message=said))  # type: ignore[misc]
                    return
                self._told(lambda seen=seen: self._take(seen))  # type: ignore[misc]
                self._wake.wait(self._interval_seconds)

    def _told(self, what: Callable[[], object]) -> None:
        """From a thread, to the screen, if there still is one."""
        if not self._ended.is_set():
            self.call_from_thread(what)

    def _take(self, seen: Seen) -> None:
        self.seen = seen
        rows = rows_of(seen, self.gaze)
        cursor = min(self.gaze.cursor, max(0, len(rows) - 1))
        if self._chosen is not None:
            cursor = next((at for at, row in enumerate(rows) if _key(row) == self._chosen), cursor)
        self.gaze = replace(self.gaze, cursor=cursor)
        self._draw()

    def _draw(self) -> None:
        if self.seen is None:
            return
        now, seen = time.time(), self.seen
        quiet_seconds = _QUIET_SECONDS + 3 * self._interval_seconds
        if seen.away is None and now - seen.at > quiet_seconds:
            seen = replace(seen, away="no answer")
        self._frame = frame(seen, self.gaze, self.size.width, now, self.size.height)
        self._drawn.show(self._frame.lines)

    def on_resize(self, _: Resize) -> None:
        self._wake.set()
        self._draw()

    def _look(self, **changed: Any) -> None:
        """Look at something else, and see it at once."""
        self.gaze = replace(self.gaze, notice="", **changed)
        self._draw()
        self._wake.set()

    # --- Keys ---------------------------------------------------------------------------------------

    def on_key(self, event: Key) -> None:
        if len(self.screen_stack) > 1 or self.focused is self._words:
            return
        key = event.key if event.key in _NAMED else event.character or event.key
        prefix, self._prefix = self._prefix, ""
        if prefix == "g" and key in _PLACES:
            self._go(_PLACES[key])
        elif key == "g":
            self._prefix = "g"
        elif key in _STEPS:
            self._move(_STEPS[key])
        elif key in ("s", "d", "h"):
            self._act(key)
        elif key in _DOES:
            _DOES[key](self)
        else:
            return
        event.stop()

    def _help(self) -> None:
        self.push_screen(Page(helped()))

    def _fold_map(self) -> None:
        self._look(is_map_shown=not self.gaze.is_map_shown)

    def _go(self, mode: str) -> None:
        self._chosen = None
        self._look(mode=mode, cursor=0)

    def _out(self) -> None:
        if self.gaze.mode != JOBS:
            self._go(JOBS)
        else:
            self._look(match="")

    def _reorder(self) -> None:
        order = ORDERS[(ORDERS.index(self.gaze.order) + 1) % len(ORDERS)]
        self._chosen = None
        self._look(order=order, cursor=0)
        self._notice(f"ordered by: {order}")

    def _move(self, steps: int) -> None:
        if self.seen is None:
            return
        rows = rows_of(self.seen, self.gaze)
        cursor = max(0, min(len(rows) - 1, self.gaze.cursor + steps))
        if rows:
            self._chosen = _key(rows[cursor])
        self.gaze = replace(self.gaze, cursor=max(0, cursor), notice="")
        if cursor >= len(rows) - 5 and self.seen.top["more"] and self._limit < self._most:
            self._limit = min(self._most, self._limit + _MORE_ROWS)
            self._wake.set()
        self._draw()

    def on_click(self, event: Click) -> None:
        row = event.screen_y - self._frame.rows_at + self._frame.first_row
        if len(self.screen_stack) == 1 and event.screen_y >= self._frame.rows_at:
            self._move(row - self.gaze.cursor)

    def on_mouse_scroll_down(self, _: MouseScrollDown) -> None:
        self._move(3)

    def on_mouse_scroll_up(self, _: MouseScrollUp) -> None:
        self._move(-3)

    # --- The filter ---------------------------------------------------------------------------------

    def _filter(self) -> None:
        self._words.display = True
        self._words.value = self.gaze.match
        self._words.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter" and event.input.display:
            self._chosen = None
            self._look(match=event.value.strip()[:200], cursor=0)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            self._close_filter()

    def _close_filter(self) -> None:
        self._words.display = False
        self._drawn.focus()

    def key_escape(self) -> None:
        """Out of the filter, and without it."""
        if self._words.display and len(self.screen_stack) == 1:
            self._close_filter()
            self._look(match="")

    # --- Doing --------------------------------------------------------------------------------------

    def chosen(self) -> Target | None:
        """What the cursor is on."""
        if self.seen is None:
            return None
        rows = rows_of(self.seen, self.gaze)
        return target_of(rows[self.gaze.cursor]) if self.gaze.cursor < len(rows) else None

    def _act(self, key: str) -> None:
        target = self._page_of or self.chosen()
        if target is None:
            return
        if key == "h" and target.job is not None:
            verb = "release" if target.state == "HELD" else "hold"
            self._do(lambda client: client.act(target.job or "", verb), f"job {target.job}: {verb}")
        elif key == "s" and target.job is not None:
            asks = Ask(f"Stop {target.title}? It ends for good.", [("Why?", "what to tell its owner")])
            self.push_screen(asks, lambda said: self._stop(target, said))
        elif key == "d" and target.defended_as is not None:
            fields = [("Why should it go on?", "a sentence"), ("Until when?", "2026-12-01 or +7d")]
            asks = Ask(f"Defend {target.title_defended}", fields)
            self.push_screen(asks, lambda said: self._defend(target, said))
        else:
            self._notice("that can't be done with this; choose a job")

    def _stop(self, target: Target, said: Answers | None) -> None:
        if said is not None:
            job, because = target.job or "", said[0]
            self._do(lambda client: client.stop(job, because=because), f"job {job} is told to end")

    def _defend(self, target: Target, said: Answers | None) -> None:
        if said is not None:
            what, (because, until) = target.defended_as or "", said
            done = f"{target.title_defended} is defended"
            self._do(lambda client: client.defend(what, because=because, until=until), done)

    def _do(self, act: Callable[[Client], object], done: str) -> None:
        """In a thread of its own: the screen stays alive while the server thinks."""

        def doing() -> None:
            try:
                with self._connect() as client:
                    act(client)
                said = done
            except MusterError as error:
                said = str(error)
            self._told(lambda: self._done(said))

        self.run_worker(doing, thread=True, group="doing")

    def _done(self, said: str) -> None:
        self._must_forget = True
        self._notice(said)
        self._wake.set()

    def _notice(self, said: str) -> None:
        self.gaze = replace(self.gaze, notice=said)
        self._draw()

    # --- All about a job ----------------------------------------------------------------------------

    def _open(self) -> None:
        target = self.chosen()
        if target is None or target.job is None:
            return
        job = target.job
        page = Page([[("asking …", "dim")]], lambda: self._fetch(job, page), self._act)
        self._page_of = target
        self.push_screen(page, lambda _: self._leave_page())
        self._fetch(job, page)

    def _leave_page(self) -> None:
        self._page_of = None

    def _fetch(self, job: str, page: Page) -> None:
        def fetch() -> None:
            lines: list[Line]
            try:
                with self._connect() as client:
                    told = about(client, job)
                spark = self.seen.sparks.get(job) if self.seen is not None else None
                lines = details(told, spark, time.time(), self.size.width * 9 // 10)
            except MusterError as error:
                lines = refused(str(error))
            self._told(lambda: page.show(lines))

        self.run_worker(fetch, thread=True, exclusive=True, group="details")


def _key(row: View) -> str:
    """By what a row is known again."""
    return str(row.get("id") or row.get("subject") or row.get("group"))


_DOES: dict[str, Callable[[TopApp], object]] = {
    "/": TopApp._filter,
    "enter": TopApp._open,
    "escape": TopApp._out,
    "w": lambda app: app._go(MAP),
    "m": TopApp._fold_map,
    "o": TopApp._reorder,
    "?": TopApp._help,
    "q": lambda app: app.exit(),
}
