"""What the keeper must not forget: which attempts it has started, what they are told, how they ended.

A file of JSON lines, each a change to what is known of one attempt; the fold of them is what is known. It is
there for when the keeper itself is killed, so it need not reach the disk, only the kernel: after a loss of
power nothing runs any more, whatever it says. An attempt is remembered until the server says that its end is
safe in the journal.
"""

import contextlib
import json
import os
from collections.abc import Iterable
from typing import Any

from muster.engines.local import wire

Key = tuple[str, int]
Entry = dict[str, Any]

_LARGE_BYTES = 1 << 20


class Records:
    """Entries by (job, attempt), kept in a file."""

    def __init__(self, folder: str, boot: str) -> None:
        self._path = f"{folder}/records"
        self.entries: dict[Key, Entry] = {}
        self.boot: str | None = None  # which the entries are of; None: there were none
        self._load()
        self._boot = boot
        self._file = -1
        self._size = 0
        self._whole = False  # whether the file holds all that is known
        self._rewrite()

    def note(self, key: Key, **changes: object) -> None:
        """Add to what is known."""
        entry = self.entries.setdefault(key, {})
        entry.update(changes)
        self._append({"job": key[0], "attempt": key[1], "set": changes})

    def end(self, key: Key, message: Entry) -> None:
        """It is over: nothing else matters of it any more."""
        self.entries[key] = {"end": message}
        self._append({"job": key[0], "attempt": key[1], "set": {"end": message}})

    def drop(self, keys: Iterable[Key]) -> None:
        known = [key for key in keys if self.entries.pop(key, None) is not None]
        if known:
            self._append({"drop": known})

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    def _load(self) -> None:
        """A last line that is torn was never relied upon."""
        try:
            with open(self._path, encoding="utf-8") as file:
                lines = file.read().split("\n")
        except FileNotFoundError:
            return
        for line in lines:
            try:
                change = json.loads(line)
            except ValueError:
                continue
            if "boot" in change:
                self.boot = change["boot"]
            elif "set" in change:
                self.entries.setdefault((change["job"], change["attempt"]), {}).update(change["set"])
            else:
                for job, attempt in change["drop"]:
                    self.entries.pop((job, attempt), None)

    def _append(self, change: Entry) -> None:
        """With a full disk we go on with what is in memory, and write it all once there is room."""
        line = wire.line(change)
        self._size += len(line)
        try:
            self._whole = self._whole and os.write(self._file, line) == len(line)
        except OSError:
            self._whole = False
        if not self._whole or self._size > _LARGE_BYTES:
            self._rewrite()

    def _rewrite(self) -> None:
        """All that is known, in a new file in place of the old."""
        lines = [wire.line({"boot": self._boot})]
        lines += [wire.line({"job": j, "attempt": a, "set": e}) for (j, a), e in self.entries.items()]
        data = b"".join(lines)
        beside = self._path + ".new"
        with contextlib.suppress(OSError):
            file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
            if os.write(file, data) == len(data):
                os.rename(beside, self._path)
                self._file, before = file, self._file
                self._size, self._whole = 0, True
                file = before
            if file >= 0:
                os.close(file)
