"""Each test has a home of its own, and where it asks for one a server in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from canned import Canned, serving


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "MUSTER_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def server(home: Path) -> Iterator[Canned]:
    with serving(home) as canned:
        yield canned
