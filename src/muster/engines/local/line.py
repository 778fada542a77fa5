"""Who comes behind whom: orders to start that wait until another attempt is over.

A line starts behind an attempt that runs; who is in it was promised those seats and holds nothing yet.
"""

from collections.abc import Iterator

from muster.engines.local.records import Key
from muster.engines.local.wire import Message


class Line:
    """Orders by (job, attempt), each with who comes before it and who after."""

    def __init__(self) -> None:
        self._orders: dict[Key, Message] = {}
        self._after: dict[Key, Key] = {}  # who comes after it
        self._before: dict[Key, Key] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._orders

    def __iter__(self) -> Iterator[Key]:
        return iter(self._orders)

    def append(self, behind: Key, order: Message) -> None:
        """Line up an order; behind whoever is last there."""
        while behind in self._after:
            behind = self._after[behind]
        key = (order["job"], order["attempt"])
        self._orders[key] = order
        self._link(behind, key)

    def is_followed(self, key: Key) -> bool:
        return key in self._after

    def next_after(self, key: Key) -> Message | None:
        """The attempt is over: the order that can be carried out now, if there is one."""
        follower = self._after.pop(key, None)
        if follower is None:
            return None
        del self._before[follower]
        return self._orders.pop(follower)

    def strike(self, key: Key) -> bool:
        """Take someone out of the line; False if it is not in one."""
        if self._orders.pop(key, None) is None:
            return False
        before, after = self._before.pop(key), self._after.pop(key, None)
        del self._after[before]
        if after is not None:
            self._link(before, after)
        return True

    def is_shorter(self, length: int, behind: Key) -> bool:
        """Whether fewer than so many come behind."""
        for _ in range(length):
            if behind not in self._after:
                return True
            behind = self._after[behind]
        return False

    def _link(self, before: Key, after: Key) -> None:
        self._after[before], self._before[after] = after, before
