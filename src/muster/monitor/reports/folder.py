"""Opening files in a folder that somebody else may fill, when we may be root and they are not.

The folder is where the user says, and so may be anybody's: what decides is whose each *file* is. Only
regular files of the job's own user are read. A job writes as its user, so nothing is missed; and a file of
root or of anybody else, whether it is reached by the folder's name, a link, or a second name of the same
file, is not. What a name stands for is looked at before it is opened, by a descriptor that can't read
(``O_PATH``): to open a pipe would wait, and to open a device may do things. That descriptor is then opened,
not the name again, under which there may be something else by now.

Below the folder no link is followed. How deep, and at how many names, is looked is bounded.
"""

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC
_DEEPEST = 8
_MOST_ENTRIES = 4096


class Found(NamedTuple):
    """A regular file. ``path`` is from the folder on; the descriptor is good while the walk is open."""

    path: str
    uid: int
    size: int
    changed_at: float  # by the wall's clock
    descriptor: int


class Walk:
    """The files below a folder whose names begin so and that are ``wanted``, by their paths, for a while.

    No folder, or none that may be read: no files.
    """

    def __init__(self, folder: str, prefix: str, wanted: Callable[[Found], bool]) -> None:
        self._prefix, self._wanted = prefix, wanted
        self._left = iter(range(_MOST_ENTRIES))
        self._kept = contextlib.ExitStack()
        self.files: list[Found] = []
        self.is_there = False
        with _opened(folder, _FOLDER) as descriptor:
            if descriptor is not None:
                self.is_there = True
                self._look(descriptor, "", _DEEPEST)
        self.files.sort()

    def close(self) -> None:
        self._kept.close()

    def _look(self, folder: int, path: str, deeper: int) -> None:
        for name, is_folder in self._entries(folder):
            inner = f"{path}/{name}" if path else name
            if not is_folder and name.startswith(self._prefix):
                self._consider(name, inner, folder)
            elif is_folder and deeper:
                with _opened(name, _FOLDER | os.O_NOFOLLOW, folder) as descriptor:
                    if descriptor is not None:
                        self._look(descriptor, inner, deeper - 1)

    def _entries(self, folder: int) -> list[tuple[str, bool]]:
        """Names, and which are folders, of as many as may still be looked at."""
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            return [
                (e.name, e.is_dir(follow_symlinks=False)) for _, e in zip(self._left, entries, strict=False)
            ]
        return []

    def _consider(self, name: str, path: str, folder: int) -> None:
        try:
            descriptor = os.open(name, _LOOK, dir_fd=folder)
        except OSError:
            return
        status = os.fstat(descriptor)
        found = Found(path, status.st_uid, status.st_size, status.st_mtime, descriptor)
        if stat.S_ISREG(status.st_mode) and self._wanted(found):
            self._kept.callback(os.close, descriptor)
            self.files.append(found)
        else:
            os.close(descriptor)


@contextlib.contextmanager
def reading(found: Found) -> Iterator[int | None]:
    """What was found, opened to be read; None if that can't be."""
    with _opened(f"/proc/self/fd/{found.descriptor}", _READ) as descriptor:
        yield descriptor


@contextlib.contextmanager
def _opened(path: str, how: int, folder: int | None = None) -> Iterator[int | None]:
    try:
        descriptor = os.open(path, how, dir_fd=folder)
    except (OSError, ValueError):  # a path with a zero in it is a ValueError
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
