"""Lines of spans on Textual's screen, letter by letter: nothing in them is read as markup."""

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from muster.tui.spans import Line

_STYLES = {
    name: Style.parse(name or "none")
    for name in ("", "bold", "dim", "reverse", "cyan", "yellow", "red", "green", "magenta")
}


class Drawn(ScrollView, can_focus=True):
    """Lines, drawn as they are; more than fit can be scrolled."""

    def __init__(self, lines: list[Line] | None = None, *, id: str) -> None:  # noqa: A002 - Textual's own word
        super().__init__(id=id)
        self.lines = lines or []

    def show(self, lines: list[Line]) -> None:
        """Only what is another is painted again: it may go over a slow line."""
        before, self.lines = self.lines, lines
        if not self.is_attached:
            return
        if len(before) != len(lines):
            self.virtual_size = Size(self.size.width, len(lines))
            self.refresh()
            return
        for y, (old, new) in enumerate(zip(before, lines, strict=True)):
            if old != new:
                self.refresh_lines(y)

    def on_mount(self) -> None:
        self.virtual_size = Size(self.size.width, len(self.lines))

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        line = self.lines[at] if at < len(self.lines) else []
        strip = Strip([Segment(text, _STYLES[style]) for text, style in line])
        return strip.adjust_cell_length(self.size.width).apply_style(self.rich_style)
