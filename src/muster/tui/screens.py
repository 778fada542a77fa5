"""What opens over the frame: a question, all about a job, the keys."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from muster.tui.painting import Drawn
from muster.tui.spans import Line, one_line

Answers = list[str]
_OUT: list[BindingType] = [Binding("escape", "leave", "out", show=False)]
_REFRESH_SECONDS = 5.0


class Ask(ModalScreen[Answers | None]):
    """A few questions; Enter after the last does it, Esc leaves it. None of them may be left empty."""

    BINDINGS = _OUT

    def __init__(self, title: str, fields: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._title, self._fields = one_line(title), fields

    def compose(self) -> ComposeResult:
        with Vertical(id="ask"):
            yield Static(self._title, markup=False)
            for label, example in self._fields:
                yield Static(label, markup=False)
                yield Input(placeholder=example)
            yield Static("", id="wrong", markup=False)
            yield Static("Enter: do it   Esc: leave it", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        inputs = list(self.query(Input))
        empty = next((one for one in inputs if not one.value.strip()), None)
        if empty is None:
            self.dismiss([one.value.strip() for one in inputs])
            return
        if empty is event.input:
            self.query_one("#wrong", Static).update("this can't be left empty")
        empty.focus()

    def action_leave(self) -> None:
        self.dismiss(None)


class Page(ModalScreen[None]):
    """Lines that can be scrolled, and are brought up to date now and then."""

    BINDINGS: ClassVar[list[BindingType]] = [*_OUT, Binding("q", "leave", "out", show=False)]

    def __init__(
        self,
        lines: list[Line],
        again: Callable[[], None] | None = None,
        act: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__()
        self._drawn = Drawn(lines, id="page")
        self._again, self._act = again, act

    def compose(self) -> ComposeResult:
        yield self._drawn

    def on_mount(self) -> None:
        self._drawn.focus()
        if self._again is not None:
            self.set_interval(_REFRESH_SECONDS, self._again)

    def show(self, lines: list[Line]) -> None:
        self._drawn.show(lines)

    def on_key(self, event: Key) -> None:
        if self._act is not None and event.key in ("s", "d", "h"):
            event.stop()
            self._act(event.key)

    def action_leave(self) -> None:
        self.dismiss(None)
