"""How a simulation's figures look: aligned columns, on a terminal with weight and colour.

Rich is imported only for a terminal; it respects NO_COLOR and dumb terminals.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from muster.cli.text import one_line
from muster.model.units import show_seconds

if TYPE_CHECKING:
    from muster.simulate.measure import Row

Span = tuple[str, str]  # text, and the style a terminal gives it
Progress = Callable[[int, int, float], None]  # jobs ended, jobs in all, virtual now
BEST = "*"
_REDRAWN_SECONDS = 0.1


def show_figures(names: Sequence[str], rows: Sequence["Row"]) -> None:
    """Figures under their headings, one column per name."""
    lines = layout(names, rows)
    if sys.stdout.isatty():
        _print_styled(lines)
    else:
        print("\n".join("".join(text for text, _ in line).rstrip() for line in lines))


def layout(names: Sequence[str], rows: Sequence["Row"]) -> list[list[Span]]:
    """Lines of spans. The best cells of a row carry a mark, which a last line explains."""
    mark = f" {BEST}" if any(row.best for row in rows) else ""
    blank = " " * len(mark)
    header = [one_line(name) + blank for name in names]
    table = [[c + (mark if i in r.best else blank) for i, c in enumerate(r.cells)] for r in rows]
    widths = [3 + max(map(len, column)) for column in zip(header, *table, strict=True)]
    label_width = 2 + max(len(row.label) for row in rows)
    lines = [[(" " * label_width, ""), *_aligned(header, widths, "bold", frozenset())]]
    heading = ""
    for row, cells in zip(rows, table, strict=True):
        if row.heading != heading:
            heading = row.heading
            lines += [[], [(heading, "bold")]]
        label = f"  {row.label}".ljust(label_width)
        lines.append([(label, ""), *_aligned(cells, widths, "", row.best)])
    return [*lines, [], [(f"{BEST} best of its row", "dim")]] if mark else lines


def _aligned(cells: Sequence[str], widths: Sequence[int], style: str, best: frozenset[int]) -> list[Span]:
    columns = enumerate(zip(cells, widths, strict=True))
    return [(c.rjust(width), "bold green" if i in best else style) for i, (c, width) in columns]


def _print_styled(lines: list[list[Span]]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        console.print(Text.assemble(*line), soft_wrap=True)


@contextmanager
def progress_bar(label: str, *, wanted: bool) -> Iterator[Progress | None]:
    """A bar on the terminal while a replay runs; nothing where nobody watches."""
    if not wanted or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn()
    said = TextColumn("jobs, {task.fields[clock]} simulated", markup=False)
    with Bar(*columns, said, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(one_line(label), total=None, clock="0s")
        redrawn_at = started_at = -1.0

        def advance(ended: int, jobs: int, now: float) -> None:
            nonlocal redrawn_at, started_at
            started_at = now if started_at < 0 else started_at
            if time.monotonic() - redrawn_at > _REDRAWN_SECONDS:
                redrawn_at = time.monotonic()
                clock = show_seconds(now - started_at)
                bar.update(task, completed=ended, total=jobs, clock=clock)

        yield advance
