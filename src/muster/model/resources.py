"""Resources: a vector of amounts. Integers throughout, so that sums never drift."""

import msgspec

from muster.model.units import MILLI, show_bytes, show_count


class Resources(msgspec.Struct, frozen=True, cache_hash=True):
    """What is had, asked, held or used. Thousandths of cpus and GPUs; bytes."""

    cpus_milli: int = 0
    memory_bytes: int = 0
    gpus_milli: int = 0
    disk_bytes: int = 0

    def __add__(self, other: "Resources") -> "Resources":
        return Resources(
            self.cpus_milli + other.cpus_milli,
            self.memory_bytes + other.memory_bytes,
            self.gpus_milli + other.gpus_milli,
            self.disk_bytes + other.disk_bytes,
        )

    def __sub__(self, other: "Resources") -> "Resources":
        return Resources(
            self.cpus_milli - other.cpus_milli,
            self.memory_bytes - other.memory_bytes,
            self.gpus_milli - other.gpus_milli,
            self.disk_bytes - other.disk_bytes,
        )

    def __mul__(self, count: int) -> "Resources":
        return Resources(
            self.cpus_milli * count,
            self.memory_bytes * count,
            self.gpus_milli * count,
            self.disk_bytes * count,
        )

    def covers(self, other: "Resources") -> bool:
        """Whether ``other`` fits in here, in every dimension."""
        return (
            self.cpus_milli >= other.cpus_milli
            and self.memory_bytes >= other.memory_bytes
            and self.gpus_milli >= other.gpus_milli
            and self.disk_bytes >= other.disk_bytes
        )

    def vector(self) -> tuple[float, float, float]:
        """The dimensions that fairness counts: cpus, memory, GPUs."""
        return (float(self.cpus_milli), float(self.memory_bytes), float(self.gpus_milli))

    def __str__(self) -> str:
        said = [
            show_count(self.gpus_milli / MILLI, "GPU") * bool(self.gpus_milli),
            show_count(self.cpus_milli / MILLI, "cpu") * bool(self.cpus_milli),
            f"{show_bytes(self.memory_bytes)} memory" * bool(self.memory_bytes),
            f"{show_bytes(self.disk_bytes)} disk" * bool(self.disk_bytes),
        ]
        return ", ".join(filter(None, said)) or "nothing"


NOTHING = Resources()
