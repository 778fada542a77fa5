"""The sites that are simulated: Delta's part with A40s, and one of ten thousand GPUs to see what breaks."""

from importlib.resources import files
from typing import Literal, get_args

from muster.layout.file import File, parse_layout
from muster.layout.merge import merge
from muster.layout.parts import CORES, RAM, Spot
from muster.model.node import Device, Node
from muster.model.units import GIB, MILLI

Site = Literal["delta", "stress"]
SITES: tuple[Site, ...] = get_args(Site)

_NODES_PER_RACK, _RACKS_PER_ROW = 10, 10
_DISK_BYTES = 1500 * GIB


def layout_text(site: Site) -> str:
    """The layout file of a site."""
    return stress_text() if site == "stress" else delta_text()


def delta_text() -> str:
    return files("muster.demo").joinpath("delta.yaml").read_text(encoding="utf-8")


def stress_text(nodes: int = 2500, gpus: int = 4) -> str:
    """A site of so many nodes, ten in a rack and ten racks in a row."""
    racks = -(-nodes // _NODES_PER_RACK)
    rows = -(-racks // _RACKS_PER_ROW)
    abreast = f"[01-{_RACKS_PER_ROW:02}]"
    lines = [
        "muster_layout: 1",
        "site: stress",
        f"kinds: {{big: {{u: 4, cores: 64, ram: 512G, gpus: {{model: A100, count: {gpus}, mem: 80G}}}}}}",
        "racks:",
        *(f'  - {{name: "R{row:03}{abreast}", row: "{row}", units: 48}}' for row in range(rows)),
        "place:",
        f'  - {{nodes: "n[00001-{nodes:05}]", kind: big, racks: "R[000-{rows - 1:03}]{abreast}",',
        f"     per_rack: {_NODES_PER_RACK}}}",
    ]
    return "\n".join(lines) + "\n"


def nodes_of(file: File, unseen: frozenset[tuple[str, int]] = frozenset()) -> tuple[Node, ...]:
    """The nodes of a layout as an engine would find them, without the GPUs that nobody sees."""
    return tuple(_node(spot, unseen) for spot in merge(file).spots)


def read_site(site: Site) -> File:
    return parse_layout(layout_text(site), f"{site}.yaml")


def _node(spot: Spot, unseen: frozenset[tuple[str, int]]) -> Node:
    cores, ram = spot.fact(CORES), spot.fact(RAM)
    gpus = [gpu for gpu in spot.gpus if (spot.name, gpu.number) not in unseen]
    return Node(
        spot.name,
        cpus_milli=int(cores.value if cores else 1) * MILLI,
        memory_bytes=int(ram.value if ram else GIB),
        disk_bytes=_DISK_BYTES,
        devices=tuple(Device(gpu.model or "gpu", gpu.memory_bytes, gpu.numa) for gpu in gpus),
        rack=spot.rack,
        switch=spot.switch,
    )
