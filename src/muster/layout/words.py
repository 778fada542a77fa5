"""The map in sentences: each picture opens with one, and whoever can't see it has them."""

import unicodedata

from muster.layout.parts import UNPLACED, Layout, Rack, Spot
from muster.model.units import show_count


def sentence(layout: Layout) -> str:
    """``delta: 400 GPUs in 100 nodes, 10 racks; 2 nodes without a place; 1 contradiction.``"""
    racks = [rack for rack in layout.racks if rack.name != UNPLACED]
    loose = sum(spot.rack == UNPLACED for spot in layout.spots)
    gpus, nodes = show_count(layout.gpu_count, "GPU"), show_count(len(layout.spots), "node")
    said = f"{printable(layout.site)}: {gpus} in {nodes}"
    said += f", {show_count(len(racks), 'rack')}" if racks else ""
    further = [f"{show_count(loose, 'node')} without a place"] if loose else []
    missing = sum(gpu.seen is False for spot in layout.spots for gpu in spot.gpus)
    further += [f"{show_count(missing, 'GPU')} said and not seen"] if missing else []
    many = len(layout.contradictions)
    further += [show_count(many, "contradiction")] if many else []
    return "; ".join([said, *further]) + "."


def where(layout: Layout, spot: Spot) -> str:
    """``gpub037 stands in rack R04 at U14 (main, row A), below switch leaf04.``"""
    name = printable(spot.name)
    below = f", below switch {printable(spot.switch)}" if spot.switch else ""
    if spot.rack == UNPLACED:
        return f"{name} has no place: nobody has said in which rack it stands{below}."
    rack = next((rack for rack in layout.racks if rack.name == spot.rack), Rack(spot.rack))
    unit = f" at U{spot.at_u}" if spot.at_u is not None else ""
    around = ", ".join(filter(None, (rack.room, f"row {rack.row}" if rack.row else None)))
    beside = f" ({printable(around)})" if around else ""
    return f"{name} stands in rack {printable(rack.name)}{unit}{beside}{below}."


def printable(text: str) -> str:
    """Names come from anywhere, and are drawn on terminals."""
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    )


def fitted(text: str, most: int) -> str:
    """Cut so that it takes no more than so many columns."""
    if width_of(text) <= most:
        return text
    kept = ""
    for letter in text:
        if width_of(kept) + width_of(letter) > most - 1:
            break
        kept += letter
    return kept + "…"


def filled(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def width_of(text: str) -> int:
    """In columns of a terminal: some letters are two wide, some sit upon the one before."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)
