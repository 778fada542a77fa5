"""The journal, on SQLite and on PostgreSQL alike: in order, durable before it says so, owned by one."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import create_engine, delete, inspect, select, text, update
from sqlalchemy.engine import Connection
from stores import LONG_SECONDS, Answers, Opener, held, put

import muster.store.journal as journal_module
from muster.model.errors import BadInput
from muster.model.events import (
    ArraySubmitted,
    DeviceHealth,
    Event,
    Exited,
    NodeHealth,
    NodeSeen,
    Outcome,
    Submitted,
)
from muster.model.job import Job, single
from muster.model.node import Device, Health, Node
from muster.model.policy import Policy
from muster.store.fold import Fold
from muster.store.image import fold_from, image_of
from muster.store.journal import (
    Batch,
    EndedJob,
    Estimate,
    Journal,
    StoreBroken,
    StoreBusy,
    StoreError,
    StoreTooNew,
    Token,
)
from muster.store.tables import MIGRATIONS, events, images, meta, migrate, version_of


def change(url: str, do: Callable[[Connection], object]) -> None:
    """Something that nobody should do: change a store behind its owner's back."""
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        do(connection)
    engine.dispose()


# --- Events -------------------------------------------------------------------------------------------


def test_events_come_back_as_they_were_and_in_order(url: str, opened: Opener) -> None:
    job = Job("1", single(gpus=1), 0.0, owner="ana")
    told: list[Event] = [
        NodeSeen(0.0, Node("a", 8000, 1 << 40, devices=(Device("A40"),), labels=frozenset({"ib"}))),
        Submitted(1.0, job),
        ArraySubmitted(2.0, job, (1, 2), sweep=(("lr", ("1", "2")),)),
        Exited(3.0, "1", 1, Outcome.FAILED, exit_code=3),
        NodeHealth(4.0, "a", Health.DRAINED, "fan is broken"),
        DeviceHealth(5.0, "a", 0, False, "faults"),
    ]
    journal = opened(url)
    put(journal, Batch(events=told[:1]))
    put(journal, Batch(events=told[1:]))
    assert journal.last_seq == 6
    journal.close()
    again = opened(url)
    image, since = again.load()
    assert image is None
    assert list(since) == told
    assert again.last_seq == 6
    assert again.events_of("1") == told[1:4]


def test_batches_are_answered_in_the_order_in_which_they_were_handed_over(url: str, opened: Opener) -> None:
    journal, answers = opened(url), Answers()
    for number in range(500):
        journal.write(Batch(events=[held(number)] * (number % 3)), answers.of(number))
    answers.wait(500)
    assert answers.told == [(number, None) for number in range(500)]
    assert list(journal.load()[1]) == [held(number) for number in range(500) for _ in range(number % 3)]


def test_what_is_answered_is_durable_and_many_batches_share_a_commit(url: str, opened: Opener) -> None:
    journal = opened(url)
    seen: list[int] = []
    answers = Answers()

    def done(error: BaseException | None) -> None:
        seen.append(sum(1 for _ in journal.load()[1]))
        answers.of(0)(error)

    for number in range(300):
        journal.write(Batch(events=[held(number)]), done)
    answers.wait(300)
    assert all(count >= number for number, count in enumerate(seen, 1))
    assert len(set(seen)) < 300, "each had a commit of its own"


def test_closing_writes_what_was_handed_over(url: str, opened: Opener) -> None:
    journal, answers = opened(url), Answers()
    for number in range(100):
        journal.write(Batch(events=[held(number)]), answers.of(number))
    journal.close()
    assert len(answers.told) == 100
    with pytest.raises(StoreError, match="closed"):
        journal.write(Batch(), answers.of(0))
    assert len(list(opened(url).load()[1])) == 100


def test_a_callback_that_fails_does_not_stop_the_writer(url: str, opened: Opener) -> None:
    journal = opened(url)

    def fails(_: BaseException | None) -> None:
        raise ZeroDivisionError

    journal.write(Batch(events=[held(1)]), fails)
    put(journal, Batch(events=[held(2)]))
    assert journal.sick is None


# --- Everything else that is kept ---------------------------------------------------------------------


def ended(number: int, **more: object) -> EndedJob:
    values = {
        "id": f"{number:03}",
        "array_id": None,
        "owner": "ana",
        "team": "nlp",
        "name": "train",
        "outcome": "SUCCEEDED",
        "submitted_at": 0.0,
        "started_at": None,
        "ended_at": float(number // 2),
        "body": b'{"id": 1}',
    }
    return EndedJob(**{**values, **more})  # type: ignore[arg-type]


def test_ended_jobs_are_found_by_id_and_listed_newest_first_page_by_page(url: str, opened: Opener) -> None:
    journal = opened(url)
    rows = [ended(n, owner=["ana", "bob"][n % 2], array_id="7" if n < 3 else None) for n in range(10)]
    put(journal, Batch(ended=rows))
    assert journal.job("004") == rows[4]
    assert journal.job("nobody") is None
    newest = rows[::-1]
    page = journal.jobs_ended(4)
    assert page == newest[:4]
    assert journal.jobs_ended(4, before=(page[-1].ended_at, page[-1].id)) == newest[4:8]
    assert journal.jobs_ended(owner="bob", team="nlp") == [row for row in newest if row.owner == "bob"]
    assert journal.jobs_ended(array_id="7") == rows[2::-1]
    assert (journal.count_ended(), journal.count_ended(owner="bob", team="vision")) == (10, 0)


def test_a_job_that_ends_again_after_it_was_queued_anew_replaces_its_row(url: str, opened: Opener) -> None:
    journal = opened(url)
    put(journal, Batch(ended=[ended(1), ended(1, outcome="FAILED")]))
    put(journal, Batch(ended=[ended(1, outcome="STOPPED")]))
    assert [row.outcome for row in journal.jobs_ended()] == ["STOPPED"]


def test_a_name_that_a_database_would_refuse_keeps_nothing_from_being_written(
    url: str, opened: Opener
) -> None:
    journal = opened(url)
    put(journal, Batch(ended=[ended(1, name="a\0b\ud800")]))
    assert journal.jobs_ended()[0].name == "a\ufffdb?"


def test_blobs_are_kept_once(url: str, opened: Opener) -> None:
    journal = opened(url)
    put(journal, Batch(blobs={"k": b"PATH=/bin"}))
    put(journal, Batch(blobs={"k": b"PATH=/bin", "other": b""}))
    journal.close()
    journal = opened(url)
    put(journal, Batch(blobs={"k": b"PATH=/bin"}))
    assert (journal.blob("k"), journal.blob("other"), journal.blob("none")) == (b"PATH=/bin", b"", None)


def test_tokens_are_found_by_their_hash_until_they_are_revoked(url: str, opened: Opener) -> None:
    journal = opened(url)
    ana, bob = Token("h1", "ana", "admin", 1.0), Token("h2", "bob", "user", 2.0, 9.0)
    put(journal, Batch(tokens=[ana, bob]))
    assert (journal.token("h1"), journal.token("h2"), journal.token("h3")) == (ana, bob, None)
    put(journal, Batch(revoked=["h1"]))
    assert journal.tokens() == [bob]


def test_estimates_learn_when_their_jobs_started(url: str, opened: Opener) -> None:
    journal = opened(url)
    put(journal, Batch(estimates=[Estimate("1", 0.0, 5.0, 9.0, 0.8), Estimate("2", 0.0, None, None, None)]))
    assert journal.estimates_settled() == []
    put(journal, Batch(estimates=[Estimate("1", 3.0, 6.0, 7.0, 0.8)], started={"1": 6.5}))
    settled = [Estimate("1", 3.0, 6.0, 7.0, 0.8, 6.5), Estimate("1", 0.0, 5.0, 9.0, 0.8, 6.5)]
    assert journal.estimates_settled() == settled
    assert journal.estimates_of("2") == [Estimate("2", 0.0, None, None, None)]


def test_reads_go_on_in_other_threads_while_it_writes(url: str, opened: Opener) -> None:
    journal, answers = opened(url), Answers()
    put(journal, Batch(blobs={"k": b"1"}))
    wrong: list[object] = []

    def read() -> None:
        wrong.extend(body for _ in range(50) if (body := journal.blob("k")) != b"1")

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for number in range(200):
        journal.write(Batch(events=[held(number)]), answers.of(number))
    for reader in readers:
        reader.join()
    answers.wait(200)
    assert wrong == []


# --- Images -------------------------------------------------------------------------------------------


def test_a_start_takes_the_newest_image_and_the_events_since(
    url: str, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "IMAGE_EVERY", 10)
    journal, fold = opened(url), Fold(Policy())
    for number in range(34):
        event = Submitted(float(number), Job(str(number), single(gpus=1), float(number)))
        fold.apply(event)
        batch = Batch(events=[event])
        if journal.image_due():
            batch.image = image_of(fold)
        put(journal, batch)
    journal.close()
    image, since = opened(url).load()
    assert image is not None
    restored = fold_from(image, Policy())
    assert restored.generation == 33
    for event in since:
        restored.apply(event)
    assert image_of(restored) == image_of(fold)
    kept: list[int] = []
    change(url, lambda c: kept.extend(c.execute(select(images.c.seq).order_by(images.c.seq)).scalars()))
    assert kept == [22, 33], "more than the last two images are kept"


def test_an_image_is_drawn_while_the_fold_goes_on(url: str, opened: Opener) -> None:
    journal, fold = opened(url), Fold(Policy())
    told: list[Event] = []
    for number in range(300):
        event = Submitted(float(number), Job(str(number), single(gpus=1), float(number)))
        fold.apply(event)
        told.append(event)
        journal.write(Batch(events=[event]), lambda _: None)
        if number == 200:
            journal.take_image(fold)
            before = image_of(fold)
    until = time.monotonic() + LONG_SECONDS
    while journal.load()[0] is None and time.monotonic() < until:
        time.sleep(0.01)
    journal.close()
    image, since = opened(url).load()
    assert image == before
    assert list(since) == told[201:]


def imaged(url: str, opened: Opener) -> None:
    """A store with images after its second and third event, of four."""
    journal, fold = opened(url), Fold(Policy())
    for number in range(4):
        event = Submitted(float(number), Job(str(number), single(gpus=1), float(number)))
        fold.apply(event)
        put(journal, Batch(events=[event], image=image_of(fold) if number in (1, 2) else None))
    journal.close()


def test_a_broken_image_gives_way_to_the_one_before(url: str, opened: Opener) -> None:
    imaged(url, opened)
    change(url, lambda c: c.execute(update(images).where(images.c.seq == 3).values(body=b"torn")))
    journal = opened(url)
    image, since = journal.load()
    assert image is not None
    assert fold_from(image, Policy()).generation == 2
    assert [event.at for event in since] == [2.0, 3.0]
    assert len(journal.notes) == 1


def test_without_a_usable_image_all_events_are_folded(url: str, opened: Opener) -> None:
    imaged(url, opened)
    change(url, lambda c: c.execute(update(images).values(body=b"torn")))
    image, since = opened(url).load()
    assert image is None
    assert [event.at for event in since] == [0.0, 1.0, 2.0, 3.0]


def test_an_image_that_was_taken_earlier_says_after_which_event(url: str, opened: Opener) -> None:
    journal = opened(url)
    put(journal, Batch(events=[held(1), held(2), held(3)]))
    put(journal, Batch(events=[held(4)], image=image_of(Fold(Policy())), image_seq=2))
    journal.close()
    assert list(opened(url).load()[1]) == [held(3), held(4)]


# --- What is broken -----------------------------------------------------------------------------------


def three_events(url: str, opened: Opener) -> None:
    journal = opened(url)
    put(journal, Batch(events=[held(1), held(2), held(3)]))
    journal.close()


def test_a_torn_last_record_is_said_and_set_aside_and_writing_goes_on(url: str, opened: Opener) -> None:
    three_events(url, opened)
    change(url, lambda c: c.execute(update(events).where(events.c.seq == 3).values(body=b"\x83\xa4ty")))
    journal = opened(url)
    assert len(journal.notes) == 1
    assert "event, 3," in journal.notes[0]
    assert journal.last_seq == 2
    put(journal, Batch(events=[held(9)]))
    journal.close()
    journal = opened(url)
    assert journal.notes == []
    assert list(journal.load()[1]) == [held(1), held(2), held(9)]


def test_a_record_that_others_follow_is_never_skipped(url: str, opened: Opener) -> None:
    three_events(url, opened)
    change(url, lambda c: c.execute(update(events).where(events.c.seq == 2).values(body=b"\x83\xa4ty")))
    with pytest.raises(StoreBroken, match="event 2 of 3"):
        list(opened(url).load()[1])


def test_a_record_that_is_missing_is_noticed(url: str, opened: Opener) -> None:
    three_events(url, opened)
    change(url, lambda c: c.execute(delete(events).where(events.c.seq == 2)))
    with pytest.raises(StoreBroken, match="event 2 of 3"):
        list(opened(url).load()[1])


def test_a_write_ahead_log_torn_by_a_crash_costs_only_its_end(tmp_path: Path, opened: Opener) -> None:
    url = f"sqlite:///{tmp_path}/muster.db"
    journal = opened(url)
    for number in range(5):
        put(journal, Batch(events=[held(number)]))
    for name in ("muster.db", "muster.db-wal"):  # as they are, with nobody to tidy up
        (tmp_path / f"copy-{name}").write_bytes((tmp_path / name).read_bytes())
    wal = tmp_path / "copy-muster.db-wal"
    wal.write_bytes(wal.read_bytes()[:-100])
    copy = opened(f"sqlite:///{tmp_path}/copy-muster.db")
    assert list(copy.load()[1]) == [held(number) for number in range(4)]


def test_a_file_that_is_no_database_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "muster.db"
    path.write_text("dear diary, " * 1000)
    with pytest.raises(StoreError, match="not a database"):
        Journal.open(f"sqlite:///{path}")


@pytest.mark.parametrize("bad", ["", "muster.db", "mysql://localhost/x", "sqlite://", "sqlite:///:memory:"])
def test_what_names_no_store_is_refused(bad: str) -> None:
    with pytest.raises(BadInput, match="sqlite:///PATH"):
        Journal.open(bad)


def test_a_store_that_can_t_be_reached_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        Journal.open(f"sqlite:///{tmp_path}/nowhere/muster.db")
    with pytest.raises(StoreError, match="can't be opened"):
        Journal.open(f"postgresql://u:secret@/x?host={tmp_path}")


def test_a_password_is_not_in_the_message(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as refusal:
        Journal.open(f"postgresql://u:secret@/x?host={tmp_path}")
    assert "secret" not in str(refusal.value)


# --- One owner, one version ---------------------------------------------------------------------------


def test_a_second_owner_is_refused_until_the_first_has_gone(url: str, opened: Opener) -> None:
    first = opened(url)
    with pytest.raises(StoreBusy, match=f"process {os.getpid()}"):
        Journal.open(url)
    put(first, Batch(events=[held(1)]))
    first.close()
    assert opened(url).last_seq == 1


def test_nobody_else_may_read_the_files(tmp_path: Path, opened: Opener) -> None:
    journal = opened(f"sqlite:///{tmp_path}/muster.db")
    put(journal, Batch(events=[held(1)]))
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["muster.db", "muster.db-shm", "muster.db-wal", "muster.db.lock"]
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_an_empty_database_is_brought_to_this_version(url: str, opened: Opener) -> None:
    opened(url).close()
    versions: list[int] = []
    change(url, lambda c: versions.append(version_of(c)))
    assert versions == [len(MIGRATIONS)]


def test_a_newer_database_is_refused_and_not_touched(url: str, opened: Opener) -> None:
    opened(url).close()
    change(url, lambda c: c.execute(update(meta).values(value="99")))
    with pytest.raises(StoreTooNew, match="newer Muster"):
        Journal.open(url)
    versions: list[int] = []
    change(url, lambda c: versions.append(version_of(c)))
    assert versions == [99]


def test_migrations_run_in_order_from_where_the_database_is(url: str, opened: Opener) -> None:
    opened(url).close()
    ran: list[str] = []
    steps = [*MIGRATIONS, lambda c: ran.append("second"), lambda c: ran.append("third")]
    change(url, lambda c: migrate(c, steps))
    change(url, lambda c: migrate(c, steps))
    assert ran == ["second", "third"]


def test_a_migration_that_fails_leaves_the_database_as_it_was(url: str) -> None:
    def fails(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE half (done INTEGER)"))
        raise ZeroDivisionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("muster.store.tables.MIGRATIONS", [*MIGRATIONS, fails])
        with pytest.raises(ZeroDivisionError):
            Journal.open(url)
    tables: list[str] = []
    change(url, lambda c: tables.extend(inspect(c).get_table_names()))
    assert tables == []
