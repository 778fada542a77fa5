"""The post of a real server: what people are told reaches them, once, however servers and channels fare."""

import json
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from muster.client import Client, Refused
from muster.model.charter import Charter
from muster.model.events import Event
from muster.model.message import Message
from muster.model.post import Messaged
from muster.model.stewardship import Effort, EffortOpened
from muster.model.units import HOUR
from muster.store.journal import Batch, Journal
from receivers import closed_port, postman, web
from servers import Server, until

LONG_AGO = 25 * HOUR  # a digest was due since, whatever the time is now


def message(to: str = "root", about: str = "effort:whisper", **more: Any) -> Message:
    told = {"kind": "budget", "sentence": f"{about} passed 80 % of its budget", "action": "muster effort ls"}
    return Message(to=to, about=about, **{**told, "asks": True, **more})


def seed(server: Server, events: Iterable[Event]) -> None:
    """Write into the journal of a server that is not running."""
    server.home.make()
    journal = Journal.open(f"sqlite:///{server.home.database}")
    journal.write(Batch(events=list(events)), lambda _: None)
    journal.close()


def told(server: Server, *messages: Message, ago: float = 1.0) -> None:
    now = time.time() - ago
    seed(server, [Messaged(now, number, one) for number, one in enumerate(messages, 1)])


def configured(server: Server, *channels: str, attention: str = "") -> None:
    """The digest is due at a time of the day that is not now."""
    later = (datetime.now(UTC).hour + 12) % 24
    lines = [f'[attention]\ndigest = "{later:02}:00"\ntimezone = "UTC"', attention, *channels]
    server.home.path.mkdir(exist_ok=True)
    server.home.configuration.write_text("\n".join(lines))


def hook(url: str, kind: str = "webhook", name: str = "hook") -> str:
    return f'channels = ["{name}"]\n[channel.{name}]\nkind = "{kind}"\nurl = "{url}"\n'


def questions(server: Server) -> list[int]:
    with server.client() as client:
        return [one["number"] for one in client.digest(peek=True)["questions"]]


@pytest.fixture
def server() -> Iterable[Server]:
    server = Server()
    yield server
    server.close()


def test_what_cant_wait_is_sent_at_once_and_not_again_after_a_crash(server: Server) -> None:
    with web() as receiver:
        configured(server, hook(receiver.url))
        told(server, message(urgent=True), message(about="job:2"))
        server.start()
        until(lambda: receiver.received, "the message")
        until(lambda: _interruptions(server) == 1, "it to be noted")
        server.sh("true")  # is answered when it is durable, and with it all that was noted before
        server.kill()
        server.start()
        assert questions(server) == [1, 2]
        assert len(receiver.received) == 1
    assert receiver.texts() == ["effort:whisper passed 80 % of its budget\n     muster effort ls"]


def _interruptions(server: Server) -> int:
    with server.client() as client:
        return sum(person["interruptions"] for person in client.attention())


def test_a_crash_while_a_channel_has_it_loses_nothing(server: Server) -> None:
    with web(hangs=True) as receiver:
        configured(server, hook(receiver.url))
        told(server, message(urgent=True))
        server.start()
        assert receiver.asked.wait(10)
        server.kill()
        receiver.received.clear()
        receiver.may_answer.set()
        server.start()
        until(lambda: _interruptions(server) == 1, "it to be sent again")
    assert receiver.received


def test_a_channel_that_does_not_answer_delays_nobody(server: Server) -> None:
    with web(hangs=True) as receiver:
        configured(server, hook(receiver.url))
        told(server, message(urgent=True))
        server.start()
        assert receiver.asked.wait(10)
        with server.client() as client:
            done = client.wait(client.submit(["true"])["id"])
            assert client.digest()["questions"][0]["number"] == 1
        assert done["outcome"] == "SUCCEEDED"
        assert receiver.received == []
        receiver.may_answer.set()


def test_a_channel_in_trouble_is_told_by_the_server_without_its_address(server: Server) -> None:
    configured(server, hook(f"http://127.0.0.1:{closed_port()}/s3cret"))
    told(server, message(urgent=True))
    server.start()
    with server.client() as client:
        until(lambda: client.health()["trouble"], "the trouble")
        assert client.health()["trouble"] == "channel hook: Connection refused"
        assert client.attention()[0]["channels"] == ["hook"]
    assert server.said().count("does not take messages") == 1
    assert "s3cret" not in server.said()


def test_what_is_refused_for_good_waits_for_the_digest_and_is_counted(server: Server) -> None:
    with web(404) as receiver:
        configured(server, hook(receiver.url))
        told(server, message(urgent=True))
        server.start()
        with server.client() as client:
            until(lambda: client.attention()[0]["undelivered"] == 1, "it to be given up")
            assert client.attention()[0]["interruptions"] == 0
        assert receiver.received == []


def test_a_digest_comes_once_a_day_over_restarts_too(server: Server) -> None:
    with web() as receiver:
        configured(server, hook(receiver.url, "slack"))
        told(
            server,
            message(),
            message(about="job:2", asks=False, kind="finding", sentence="it was stopped"),
            ago=LONG_AGO,
        )
        server.start()
        until(lambda: receiver.received, "the digest")
        server.terminate()  # all that it did is written down
        for _ in range(2):
            server.start()
            assert questions(server) == [1]
            server.kill()
    [text] = receiver.texts()
    assert text.splitlines() == [
        "root: *Today needs one answer from you.*",
        "1. effort:whisper passed 80 % of its budget",
        "     `muster effort ls`",
        "Since yesterday:",
        "• it was stopped  `muster effort ls`",
    ]


def test_beyond_the_cap_nothing_interrupts(server: Server) -> None:
    with web() as receiver:
        configured(server, hook(receiver.url), attention="interruptions = 2")
        told(server, *(message(about=f"job:{job}", urgent=True) for job in range(9, 13)))
        server.start()
        until(lambda: _interruptions(server) == 2, "two interruptions")
        server.terminate()
        server.start()
        assert questions(server) == [1, 2, 3, 4]
    assert len(receiver.received) == 2
    assert receiver.texts()[1].splitlines()[-1].startswith("This is the last interruption today")
    assert "last interruption" not in receiver.texts()[0]


def test_everybody_is_written_to_where_they_want(server: Server) -> None:
    with postman() as mails, web() as receiver:
        users = '[user.ana]\nemail = "ana@example.org"\nchannels = ["mail"]\n[user.ben]\nchannels = []\n'
        mail = (
            f'[channel.mail]\nkind = "email"\nhost = "localhost"\nport = {mails.port}\n'
            'tls = "none"\nfrom = "muster@example.org"\n'
        )
        configured(server, hook(receiver.url), mail, users)
        told(server, *(message(to=who, about=f"job:{who}", urgent=True) for who in ("ana", "ben", "cia")))
        server.start()
        until(lambda: mails.mails and receiver.received, "the mail and the post")
    assert [recipients for _, recipients, _ in mails.mails] == [["ana@example.org"]]
    assert [body["to"] for _, body in receiver.received] == ["cia"]


def test_a_channel_that_is_configured_later_is_used(server: Server) -> None:
    configured(server)
    told(server, message(urgent=True))
    server.start()
    with web() as receiver:
        configured(server, hook(receiver.url))
        until(lambda: receiver.received, "the message")


# --- Answers ------------------------------------------------------------------------------------------


def test_the_end_of_a_job_answers_what_was_asked_about_it(server: Server) -> None:
    told(server, message(about="job:1"), message(about="effort:other"))
    server.start()
    with server.client() as client:
        job = client.submit(["true"])
        assert job["id"] == "1"
        client.wait("1")
        until(lambda: questions(server) == [2], "the question to close")
        settled = client.digest(peek=True)["settled"]
    assert [(one["number"], one["because"]) for one in settled] == [(1, "it has ended")]


def test_a_question_about_an_array_is_answered_by_the_end_of_all_of_it(server: Server) -> None:
    told(server, message(about="job:1", kind="silent"), message(about="job:1"))
    server.start()
    with server.client() as client:
        client.submit(["true"], array="1-2", hold=True)
        assert questions(server) == [1, 2]
        client.release("1_1")  # it goes on: that answers what was asked about its budget
        client.wait("1_1")
        assert questions(server) == [1]
        client.release("1_2")
        client.wait("1_2")
        until(lambda: questions(server) == [], "the question to close")


def test_attention_counts_efforts_and_how_long_questions_wait(server: Server) -> None:
    now = time.time() - 60
    effort = Effort(name="whisper", charter=Charter(owner="root"), opened_at=now, opened_by="root")
    seed(server, [EffortOpened(now, effort), Messaged(now, 1, message())])
    server.start()
    with server.client() as client:
        [row] = client.attention()
    assert (row["efforts"], row["questions"]) == (["whisper"], 1)
    assert row["oldest_question_seconds"] >= 60


def test_only_the_addressee_settles_a_message(server: Server) -> None:
    told(server, message(to="ana"))
    server.options = ("--http", "127.0.0.1:0")
    server.start()
    with server.client() as root:
        ana, eve = root.token("ana"), root.token("eve")
    with Client(server.url, eve) as client:
        with pytest.raises(Refused, match="you have no message 1"):
            client.settle(1)
        with pytest.raises(Refused, match="the digest of ana is theirs"):
            client.digest("ana")
    with Client(server.url, ana) as client:
        assert client.digest()["questions"][0]["number"] == 1
        assert Client.questions == 1
        assert client.settle(1)["because"] == "done by ana"
        assert client.settle(1)["because"] == "done by ana"
        assert client.digest()["questions"] == []
        assert Client.questions == 0


def test_looking_moves_on_and_answers_nothing(server: Server) -> None:
    told(server, message(), message(about="job:9", kind="finding", asks=False, sentence="it was stopped"))
    server.start()
    with server.client() as client:
        client.wait(client.submit(["false"])["id"])
        peeked, first, second = client.digest(peek=True), client.digest(), client.digest()
    assert (peeked["news"], peeked["summary"]) == (first["news"], first["summary"])
    assert [one["sentence"] for one in first["news"]] == ["it was stopped"]
    assert first["summary"].startswith("1 job failed")
    assert (second["news"], second["summary"]) == ([], "")
    assert [one["number"] for one in second["questions"]] == [1]


def test_what_was_mended_by_itself_is_told_in_the_digest(server: Server) -> None:
    server.start()
    script = '[ "$MUSTER_ATTEMPT" = 1 ] && { echo MemoryError >&2; exit 1; } || true'
    with server.client() as client:
        job = client.submit(["sh", "-c", script], memory="64M", name="train")
        assert client.wait(job["id"])["outcome"] == "SUCCEEDED"
        digest = client.digest()
    assert digest["news"] == digest["questions"] == []
    assert digest["summary"] == (
        "1 job succeeded, 1 retried by itself"
        " (job 1 train: it ran out of memory: it is run again with more (64M → 128M))"
    )


# --- The command line ---------------------------------------------------------------------------------


def test_muster_digest_and_attention(server: Server) -> None:
    told(server, message(sentence="it is \x1b[31mred\nand new"))
    server.start()
    shown = server.muster("digest")
    assert shown.stdout.splitlines() == [
        "Today needs one answer from you.",
        "  1  it is \N{REPLACEMENT CHARACTER}[31mred and new",
        "     muster effort ls",
    ]
    assert shown.stderr == ""
    asked = server.muster("attention").stdout.splitlines()
    assert asked[0].split() == [
        "USER",
        "EFFORTS",
        "INTERRUPTED",
        "QUESTIONS",
        "OLDEST",
        "UNDELIVERED",
        "CHANNELS",
    ]
    assert asked[1].split()[:4] == ["root", "0", "0", "1"]
    done = server.muster("digest", "--done", "1", "-o", "json")
    assert json.loads(done.stdout)["questions"] == []
    assert server.muster("digest", "--done", "7").returncode == 1


def test_a_command_as_a_channel(server: Server, tmp_path: Path) -> None:
    tell = tmp_path / "tell"
    tell.write_text(f"#!/bin/sh\ncat > {tmp_path}/told.new && mv {tmp_path}/told.new {tmp_path}/told\n")
    tell.chmod(0o755)
    channel = f'channels = ["own"]\n[channel.own]\nkind = "command"\ncommand = ["{tell}"]\n'
    configured(server, channel)
    told(server, message(urgent=True))
    server.start()
    until((tmp_path / "told").exists, "the command")
    assert json.loads((tmp_path / "told").read_text())["to"] == "root"
