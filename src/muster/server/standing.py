"""Where this machine stands, by the layout: its rack and its switch, for placement and for the map alike."""

from pathlib import Path

import msgspec

from muster.home import Home
from muster.layout.file import File
from muster.layout.found import found_by
from muster.layout.merge import merge
from muster.layout.parts import UNPLACED
from muster.layout.read import read_layout
from muster.model.node import Node

ENGINE = "the engine"  # as a source


def layout_path(home: Home, named: str | None) -> Path | None:
    """The file that the configuration names, from Muster's home on; otherwise the usual one, if any."""
    if named is not None:
        return home.path / named
    return home.layout if home.layout.exists() else None


def read_standing(home: Home, named: str | None) -> File | None:
    path = layout_path(home, named)
    return None if path is None else read_layout(path)


def stood(node: Node, file: File) -> tuple[Node, list[str]]:
    """The node in its rack and below its switch; and what there is to say about it."""
    layout = merge(file, (found_by(ENGINE, node),))
    spot = layout.spot(node.name)
    assert spot is not None  # it was found
    said = [str(one) for one in layout.contradictions]
    if spot.rack == UNPLACED:
        said.append(f"{file.name} does not say in which rack {node.name} stands")
    rack = None if spot.rack == UNPLACED else spot.rack  # nobody is near to anybody for having no place
    return msgspec.structs.replace(node, rack=rack, switch=spot.switch), said


def all_standing(file: File | None) -> dict[str, tuple[str | None, str | None]]:
    """The rack and the switch of every node that the file places."""
    if file is None:
        return {}
    spots = merge(file).spots
    return {spot.name: (None if spot.rack == UNPLACED else spot.rack, spot.switch) for spot in spots}
