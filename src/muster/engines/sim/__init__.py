"""The simulated engine: virtual time, no ticks."""

from muster.engines.sim.engine import Outage, SimEngine

__all__ = ["Outage", "SimEngine"]
