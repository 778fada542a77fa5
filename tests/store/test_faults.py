"""What goes wrong under a journal: killed processes, full disks, lost servers, commits of unknown fate."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from sqlalchemy.exc import OperationalError
from stores import LONG_SECONDS, Answers, Opener, Postgres, held, put

from muster.model.events import Event
from muster.store.journal import Batch, Journal, StoreError

KILLS = 6


def acknowledged_before_a_kill(url: str, seed: int) -> int:
    """Let a process write for a while and kill it. The last number that it was told is durable."""
    script = str(Path(__file__).with_name("writer.py"))
    command = [sys.executable, script, url, str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        time.sleep(Random(seed).uniform(0.0, 0.15))
        writer.kill()
        lines = writer.stdout.read().split("\n")
    told = [int(line) for line in lines[:-1]]  # what follows the last end of a line was cut off
    assert told == sorted(told)
    return told[-1] if told else 0


def test_what_was_acknowledged_survives_a_kill_at_any_moment(url: str, opened: Opener) -> None:
    told = 0
    for seed in range(KILLS):
        told = max(told, acknowledged_before_a_kill(url, seed))
        journal = opened(url)
        kept = [event.at for event in journal.load()[1]]
        journal.close()
        assert kept == [float(seq) for seq in range(1, len(kept) + 1)]
        assert len(kept) >= told
    assert told > KILLS


# --- A full disk --------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk, and not everywhere")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path) -> Path:
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return filler


def write_until_sick(journal: Journal, answers: Answers) -> list[Event]:
    """A few small records may still fit into what SQLite has reserved."""
    written: list[Event] = []
    until = time.monotonic() + LONG_SECONDS
    while journal.sick is None and time.monotonic() < until:
        written.append(held(len(written)))
        journal.write(Batch(events=written[-1:], blobs={str(len(written)): bytes(50_000)}), answers.of(1))
        time.sleep(0.005)
    return written


def test_on_a_full_disk_writes_wait_and_go_through_when_there_is_space(
    small_disk: Path, opened: Opener
) -> None:
    troubles: list[str] = []
    recoveries: list[bool] = []
    journal = opened(
        f"sqlite:///{small_disk}/muster.db",
        on_trouble=troubles.append,
        on_recovered=lambda: recoveries.append(True),
    )
    filler, answers = fill(small_disk), Answers()
    written = write_until_sick(journal, answers)
    assert "full" in (journal.sick or "")
    answered = len(answers.told)
    assert answered < len(written)
    for _ in range(3):
        written.append(held(len(written)))
        journal.write(Batch(events=written[-1:]), answers.of(1))
    time.sleep(0.3)
    assert (len(troubles), recoveries, len(answers.told)) == (1, [], answered)
    assert len(list(journal.load()[1])) == answered, (
        "what is not durable was answered, or the other way round"
    )
    filler.unlink()
    answers.wait(len(written))
    assert (journal.sick, len(troubles), recoveries) == (None, 1, [True])
    assert {error for _, error in answers.told} == {None}
    assert list(journal.load()[1]) == written


def test_who_is_not_written_when_the_journal_closes_is_told_so(small_disk: Path, opened: Opener) -> None:
    url = f"sqlite:///{small_disk}/muster.db"
    journal, answers = opened(url), Answers()
    filler = fill(small_disk)
    written = write_until_sick(journal, answers)
    journal.close()
    errors = [error for _, error in answers.told]
    lost = [error for error in errors if error is not None]
    assert len(errors) == len(written)
    assert lost
    assert all(isinstance(error, StoreError) for error in lost)
    filler.unlink()
    assert len(list(opened(url).load()[1])) == len(written) - len(lost)


# --- Connections and commits --------------------------------------------------------------------------


def test_a_database_server_that_goes_away_for_a_while_loses_nothing(
    postgres: Postgres, opened: Opener
) -> None:
    url, troubles = postgres.database(), list[str]()
    journal, answers = opened(url, on_trouble=troubles.append), Answers()
    put(journal, Batch(events=[held(0)]))
    postgres.stop()
    for number in range(1, 50):
        journal.write(Batch(events=[held(number)]), answers.of(number))
    time.sleep(0.2)
    assert journal.sick is not None
    assert answers.told == []
    postgres.start()
    answers.wait(49)
    assert answers.told == [(number, None) for number in range(1, 50)]
    assert (journal.sick, len(troubles)) == (None, 1)
    assert list(journal.load()[1]) == [held(number) for number in range(50)]


def test_who_has_lost_its_store_to_another_does_not_write_there(postgres: Postgres, opened: Opener) -> None:
    url = postgres.database()
    first, answers = opened(url), Answers()
    put(first, Batch(events=[held(1)]))
    postgres.stop()
    postgres.start()
    second = opened(url)  # the first has not noticed yet, and its lock is gone
    put(second, Batch(events=[held(2)]))
    first.write(Batch(events=[held(3)]), answers.of(3))
    until = time.monotonic() + LONG_SECONDS
    while "in use by another" not in (first.sick or "") and time.monotonic() < until:
        time.sleep(0.02)
    assert "in use by another" in (first.sick or "")
    assert answers.told == []
    assert list(second.load()[1]) == [held(1), held(2)]


@pytest.mark.parametrize("happened", [True, False])
def test_a_commit_of_unknown_fate_is_neither_lost_nor_repeated(
    url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch, happened: bool
) -> None:
    journal, failures = opened(url), [1, 2]
    dialect = journal._database.writer.dialect
    commit = dialect.do_commit

    def unreliable(connection: object) -> None:
        if failures:
            failures.pop()
            if happened:
                commit(connection)
            raise OperationalError("COMMIT", None, Exception("the line went dead"))
        commit(connection)

    monkeypatch.setattr(dialect, "do_commit", unreliable)
    put(journal, Batch(events=[held(1), held(2)], blobs={"k": b"1"}))
    put(journal, Batch(events=[held(3)]))
    assert list(journal.load()[1]) == [held(1), held(2), held(3)]
    assert journal.blob("k") == b"1"
