"""Deciding, as a function: ``schedule(snapshot, policy, now)`` answers with a Plan.

``govern`` does for engines that find the seats themselves.
"""

from muster.schedule.cycle import schedule
from muster.schedule.govern import govern

__all__ = ["govern", "schedule"]
