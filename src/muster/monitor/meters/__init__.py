"""Meters: what attempts and the node use, as the kernel and the driver show it.

``Meters.read`` gives one Reading of each attempt and one of the node. An attempt's figures come from the
control groups of its parts (``groups``), and what those do not show from its processes (``trees``); who
these are, without groups, is found by ``census``. GPUs are told by NVIDIA's library (``nvml``), the node by
``host``.
"""

from muster.monitor.meters.gather import Attended, Meters, Readings
from muster.monitor.meters.parts import PartSeen

__all__ = ["Attended", "Meters", "PartSeen", "Readings"]
