"""The place as glyphs: racks side by side, as many as fit; cpus as a bar where there are no GPUs."""

from collections.abc import Iterator, Sequence
from typing import Any

from muster.tui.spans import BARS, BOLD, PLAIN, Line, bar, padded, runs, said, width

View = dict[str, Any]
STYLES = {"■": "cyan", "▨": "yellow", "□": "dim", "✕": "red", "◌": "dim", "?": "magenta"}
NAMES = {
    "working": "■",
    "held idle": "▨",
    "free": "□",
    "down": "✕",
    "drained": "◌",
    "unknown": "?",
}
_GAP = "   "
_BAR = 40
_MOST_LABEL = 12


def cluster(top: View, columns: int) -> list[Line]:
    """All that there is, in lines; the caller looks whether these are too many."""
    lines = list(_strips(top["strips"], columns))
    if top["cpus"] is not None:
        lines.append(_cpus(top["cpus"], columns))
    return lines


def _strips(strips: Sequence[View], columns: int) -> Iterator[Line]:
    label = min(_MOST_LABEL, max((width([said(strip["name"])]) for strip in strips), default=0))
    blocks = [_block(strip, label, columns) for strip in strips]
    widest = max((width(line) for block in blocks for line in block), default=0)
    abreast = max(1, (columns + len(_GAP)) // (widest + len(_GAP)))
    for at in range(0, len(blocks), abreast):
        yield from _beside(blocks[at : at + abreast], widest)


def _beside(blocks: Sequence[list[Line]], widest: int) -> Iterator[Line]:
    for at in range(max(map(len, blocks))):
        line: Line = []
        for block in blocks:
            part = block[at] if at < len(block) else []
            line += [(_GAP, PLAIN)] if line else []
            line += [*part, (" " * (widest - width(part)), PLAIN)]
        yield line


def _block(strip: View, label: int, columns: int) -> list[Line]:
    """A rack: its name, then its words; in several lines if it must be, below each other."""
    lines: list[Line] = [[padded(said(strip["name"], BOLD), label)]]
    room = max(1, columns - label - 1)
    for use, states in zip(strip["use"], strip["states"], strict=True):
        for at in range(0, len(use), room):
            part, kinds = use[at : at + room].replace("█", BARS[-1]), states[at : at + room]
            if width(lines[-1]) + 1 + len(part) > columns and len(lines[-1]) > 1:
                lines.append([(" " * label, PLAIN)])
            lines[-1] += [(" ", PLAIN), *runs(part, [STYLES.get(kind, PLAIN) for kind in kinds])]
    return lines


def _cpus(cpus: View, columns: int) -> Line:
    """``laptop ██▒▒░░░░ 4 of 8 cpus held, 1.9 used``"""
    total, held, used = cpus["cpus"], cpus["held"], cpus["used"]
    name = said(cpus["name"])[0] if cpus["name"] else f"{cpus['nodes']:,} nodes without GPUs"
    words = f"{held:g} of {total:g} cpus held" + ("" if used is None else f", {used:.1f} used")
    room = max(8, min(_BAR, columns - len(name) - len(words) - 4))
    known = 0.0 if used is None or not total else min(used, held) / total
    drawn = bar(known, room, (held / total if total else 0.0) - known)
    styles = {"█": "cyan", "▒": "yellow", "░": "dim"}
    return [(f"{name}  ", BOLD), *runs(drawn, [styles[one] for one in drawn]), (f"  {words}", PLAIN)]
