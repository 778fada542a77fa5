"""How much of something is held, and how much of that is used, of GPUs where there are any and else of cpus.

What the API knows of a layer counts. Where it can't say, as of a job that is on several nodes, the GPUs do:
what each of them is used is on the map, and the sum of that is what stands on it uses. What is not known of
all is known of a part, and the rest is neither used nor idle. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from muster.layout.geometry import gpu_id, rack_id
from muster.server.answers import Amounts
from muster.server.seeing.scene import Scene
from muster.server.seeing.stack_answers import Layer, StackDevice

_HARDWARE = ("site", "rack", "node")


class Load(msgspec.Struct, frozen=True):
    """``whole``: all of it; of a job, what it holds. Of what is held, so much is measured, and used."""

    unit: str  # GPU or cpu
    whole: float
    held: float
    measured: float
    used: float

    @property
    def share(self) -> float | None:
        return self.used / self.measured if self.measured else None

    def __str__(self) -> str:
        of = f"{self.held:.4g} of {_many(self.whole, self.unit)} held" if self.whole != self.held else ""
        said = of or f"{_many(self.held, self.unit)} held"
        if not self.held:
            return said
        if not self.measured:
            return f"{said}, use not known"
        part = "" if self.measured >= 0.99 * self.held else f" of the {self.measured:.3g} measured"
        return f"{said}, {self.used / self.measured:.0%} used{part}"


def _many(count: float, unit: str) -> str:
    return f"{count:,.4g} {unit}{'s' * (count != 1)}"


class Loads:
    """The load of every layer of one stack."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def of(self, layer: Layer, node: Layer | None = None) -> Load | None:
        """None: nothing is held of it by itself, as of a process. ``node``: the one that it stands on."""
        if layer.held is None:
            return None
        unit = _unit(layer.has or layer.held)
        whole, held = _amount(layer.has or layer.held, unit), _amount(layer.held, unit)
        known = None if layer.used is None else layer.used.gpus if unit == "GPU" else layer.used.cpus
        if layer.layer not in _HARDWARE and known is not None:
            return Load(unit, whole, held, held, min(known, held))
        measured, used = self._seen(layer, node, unit)
        scale = min(1.0, held / measured) if measured else 0.0  # of a GPU that is shared, only a part is held
        return Load(unit, whole, held, measured * scale, used * scale)

    def gpu(self, node: str, number: int) -> float | None:
        """How much of a GPU is used, as on the map."""
        seen = self._scene.gpus.get(gpu_id(node, number))
        return None if seen is None else seen.share

    def _seen(self, layer: Layer, node: Layer | None, unit: str) -> tuple[float, float]:
        if layer.layer == "node":
            return self._on_node(layer, unit)
        if layer.layer in _HARDWARE:
            return self._in(layer, unit)
        if node is None or unit != "GPU":
            return 0.0, 0.0
        return self._by_devices(node.id, [device for device in node.devices if layer.id in device.jobs])

    def _in(self, layer: Layer, unit: str) -> tuple[float, float]:
        tally = self._scene.racks.get(rack_id(layer.id)) if layer.layer == "rack" else None
        if layer.left_out and tally is not None:
            return float(tally.measured), tally.used
        below = [self._seen(child, None, unit) for child in layer.children]
        return sum(measured for measured, _ in below), sum(used for _, used in below)

    def _on_node(self, node: Layer, unit: str) -> tuple[float, float]:
        if unit == "GPU":
            return self._by_devices(node.id, [device for device in node.devices if device.jobs])
        if node.used is None or node.used.cpus is None or node.held is None:
            return 0.0, 0.0
        return node.held.cpus, min(node.used.cpus, node.held.cpus)

    def _by_devices(self, node: str, devices: Sequence[StackDevice]) -> tuple[float, float]:
        seen = [self.gpu(node, device.number) for device in devices]
        shares = [share for share in seen if share is not None]
        return float(len(shares)), sum(shares)


def _unit(amounts: Amounts) -> str:
    return "GPU" if amounts.gpus else "cpu"


def _amount(amounts: Amounts, unit: str) -> float:
    return amounts.gpus if unit == "GPU" else amounts.cpus


def added(loads: Iterable[Load | None]) -> Load | None:
    """Of several together, in the unit of the first."""
    known = [load for load in loads if load is not None]
    if not known:
        return None
    same = [load for load in known if load.unit == known[0].unit]
    sums: Mapping[str, float] = {
        name: sum(getattr(load, name) for load in same) for name in ("whole", "held", "measured", "used")
    }
    return Load(known[0].unit, **sums)
