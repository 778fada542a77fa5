"""Deciding, as a function: ``schedule(snapshot, policy, now)`` answers with a Plan."""

from muster.schedule.cycle import schedule

__all__ = ["schedule"]
