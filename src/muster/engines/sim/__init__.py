"""The simulated engine: virtual time, no ticks; and the same in our time."""

from muster.engines.sim.engine import Outage, SimEngine
from muster.engines.sim.live import Life, LiveEngine, Seated

__all__ = ["Life", "LiveEngine", "Outage", "Seated", "SimEngine"]
