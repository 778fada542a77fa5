"""Each test has a home of its own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("MUSTER_URL", "MUSTER_TOKEN", "MUSTER_JOB_ID", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    return tmp_path
