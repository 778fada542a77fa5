"""Real databases for the store's tests: SQLite in a file, and a PostgreSQL server of the tests' own."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from stores import Opener, Postgres

from muster.store.journal import Journal


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    # Not below pytest's folder: others than its owner can't get in there, and a socket's path must be short.
    folder = Path(tempfile.mkdtemp(prefix="muster-pg-", dir="/tmp"))
    server = Postgres(found[-1].parent, folder)
    yield server
    server.stop()
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that nobody has opened yet, in each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/muster.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.database()


@pytest.fixture
def opened() -> Iterator[Opener]:
    """Opens journals, and closes those that the test has not."""
    journals: list[Journal] = []

    def opened(url: str, **more: object) -> Journal:
        journals.append(Journal.open(url, **more))  # type: ignore[arg-type]
        return journals[-1]

    yield opened
    for journal in journals:
        journal.close()
