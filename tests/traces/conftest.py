"""Small files to read, written where each test may."""

from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write(name, *lines)`` → the path of a file with these lines."""

    def _write(name: str, *lines: str, end: str = "\n") -> str:
        path = tmp_path / name
        path.write_bytes((end.join(lines) + end).encode())
        return str(path)

    return _write
