"""Reading a layout from the disk: of any file, so with a limit on how much of it."""

import stat
from pathlib import Path

from muster.layout.file import File, parse_layout
from muster.model.errors import BadInput

MOST_BYTES = 64 << 20  # of an export; a layout of our own is far smaller


def read_layout(path: Path) -> File:
    """The layout in a file, or one sentence why there is none."""
    return parse_layout(read_text(path), path.name)


def read_text(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise BadInput(f"{path} is not a regular file")
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "no file is called so"
        raise BadInput(f"{path} can't be read: {said}") from None
    if len(data) > MOST_BYTES:
        raise BadInput(f"{path} is larger than {MOST_BYTES >> 20} MiB, which no layout is")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInput(f"{path}, line {line}: this is not UTF-8; save the file in that encoding") from None
