"""Two times: a steady one, in which everything is reckoned, and the wall's, which people read and write.

Nobody can set the steady one. It goes with the machine, on from what the wall showed when Muster first looked
since the machine was booted, and is kept in a file: so it is the same for the server and the keeper, and for
those that come after them. After a reboot it goes on from the wall's again, or from the last time that was
written down if the wall shows an earlier one. How far the wall is ahead of it is nothing, until somebody sets
the clock; then it is what has to be added wherever people look.
"""

import contextlib
import os
import time

from muster.engines.local.processes import boot_id


class Clock:
    """``path``: where the steady time is kept; ``since``: it was that late already."""

    def __init__(self, path: str, since: float = 0.0) -> None:
        uptime = time.monotonic()
        kept = _kept(path)
        began = time.time() - uptime if kept is None else kept
        self._began = max(began, since - uptime)
        if self._began != kept:
            _keep(path, self._began)

    def now(self) -> float:
        """The steady time."""
        return self._began + time.monotonic()

    def wall(self) -> float:
        return time.time()

    def wall_ahead_seconds(self) -> float:
        return self.wall() - self.now()


def _kept(path: str) -> float | None:
    """When the machine was booted, in steady time; None: nobody has looked since then."""
    try:
        with open(path, encoding="ascii") as file:
            boot, began = file.read().split()
        return float(began) if boot == boot_id() else None
    except (OSError, ValueError):
        return None


def _keep(path: str, began: float) -> None:
    """With a full disk we go without: as long as nobody sets the clock, others find the same."""
    beside = f"{path}.{os.getpid()}"
    with contextlib.suppress(OSError):
        with open(beside, "w", encoding="ascii") as file:
            file.write(f"{boot_id()} {began!r}\n")
        os.rename(beside, path)
