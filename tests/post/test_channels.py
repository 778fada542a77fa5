"""Channels: what arrives is what was told, whoever wrote it; what does not arrive is said without secrets."""

import json
import logging
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from muster.model.message import Message
from muster.model.post import Letter
from muster.server.config_post import Channel
from muster.server.stewardship.channels import Courier, Envelope, NotTaken, sender
from muster.server.stewardship.writing import envelope, line_of
from muster.steward.digest import Digest, Single
from receivers import PASSWORD, USER, certificate, closed_port, postman, web
from servers import until

ACTION = "muster effort extend whisper"
EVIL = "a\r\nBcc: eve@example.org\r\n\r\n<!channel> & <https://evil|click> \x1b[31m*b* `c`"


def one(sentence: str = "whisper passed 80 % of its budget", action: str = ACTION) -> Envelope:
    message = Message(
        to="ana", about="effort:whisper", kind="budget", sentence=sentence, action=action, asks=True
    )
    letter = Letter(14, message, 1.0, 1.0)
    return envelope(Single("ana", line_of(letter)), [letter], "ana@example.org")


def digest_of_one(sentence: str = "whisper passed 80 % of its budget") -> Envelope:
    single = one(sentence)
    letter = Letter(14, single.messages[0], 1.0, 1.0)
    whole = Digest(to="ana", questions=(line_of(letter),), summary="2 jobs won")
    return envelope(whole, [letter], "ana@example.org")


def refusal(channel: Channel, sent: Envelope) -> NotTaken:
    with pytest.raises(NotTaken) as refused:
        sender(channel).send(sent)
    assert "s3cret" not in str(refused.value)
    assert PASSWORD not in str(refused.value)
    return refused.value


# --- Webhooks -----------------------------------------------------------------------------------------


def test_a_webhook_gets_all_of_it_as_json() -> None:
    with web() as server:
        sender(Channel(kind="webhook", url=server.url)).send(digest_of_one())
    [(path, body)] = server.received
    assert path == "/hook/s3cret"
    assert (body["to"], body["digest"]) == ("ana", True)
    assert body["text"].splitlines() == [
        "Today needs one answer from you.",
        " 14  whisper passed 80 % of its budget",
        "     muster effort extend whisper",
        "Since yesterday: 2 jobs won.",
    ]
    assert body["messages"][0]["number"] == 14
    assert body["messages"][0]["action"] == "muster effort extend whisper"


def test_slack_gets_its_form_and_nobody_is_pinged_or_led_astray() -> None:
    with web() as server:
        sender(Channel(kind="slack", url=server.url)).send(one(EVIL, EVIL))
    [(_, body)] = server.received
    assert list(body) == ["text"]
    assert body["text"].startswith("ana: *a Bcc")
    assert "<" not in body["text"]
    assert ">" not in body["text"]
    assert "&lt;!channel&gt; &amp;" in body["text"]
    assert "\x1b" not in body["text"]
    assert body["text"].splitlines()[1].count("`") == 2  # around the command, and none in it


def test_markdown_keeps_what_people_wrote_from_being_markup() -> None:
    assert r"\<\!channel\> \& \<https://evil\|click\>" in one(EVIL).markdown
    assert r"\*b\* \`c\`" in one(EVIL).markdown


def test_an_address_may_stand_in_a_file(tmp_path: Path) -> None:
    with web() as server:
        (tmp_path / "url").write_text(f"{server.url}\n")
        sender(Channel(kind="webhook", url_file=str(tmp_path / "url"))).send(one())
        assert len(server.received) == 1
    (tmp_path / "url").unlink()
    said = str(refusal(Channel(kind="webhook", url_file=str(tmp_path / "url")), one()))
    assert said == "its url_file can't be read: No such file or directory"


@pytest.mark.parametrize(("status", "for_good"), [(404, True), (302, True), (429, False), (503, False)])
def test_another_status_is_a_refusal_now_or_for_good(status: int, for_good: bool) -> None:
    with web(status) as server:
        refused = refusal(Channel(kind="webhook", url=server.url), one())
    assert (str(refused), refused.for_good) == (f"it answers with status {status}", for_good)


def test_where_nobody_listens_is_said_without_where() -> None:
    refused = refusal(Channel(kind="webhook", url=f"http://127.0.0.1:{closed_port()}/s3cret"), one())
    assert (str(refused), refused.for_good) == ("Connection refused", False)
    refused = refusal(Channel(kind="webhook", url="http://nowhere.invalid/s3cret"), one())
    assert str(refused) == "its host is not found"


def test_who_does_not_answer_is_cut_off() -> None:
    with web(hangs=True) as server:
        channel = Channel(kind="webhook", url=server.url, timeout_seconds=0.05)
        assert str(refusal(channel, one())) == "it does not answer in time"
        server.may_answer.set()


# --- E-mail -------------------------------------------------------------------------------------------


def mail(port: int, **more: Any) -> Channel:
    told = {"kind": "email", "host": "localhost", "port": port, "sender": "muster@example.org", "tls": "none"}
    return msgspec.convert({**told, **more}, Channel)


def test_an_e_mail_says_what_was_told_and_nothing_can_be_smuggled_in() -> None:
    with postman() as server:
        sender(mail(server.port)).send(one(EVIL))
    [(source, recipients, found)] = server.mails
    assert (source, recipients) == ("muster@example.org", ["ana@example.org"])
    assert found["Bcc"] is None
    assert found["To"] == "ana@example.org"
    assert found["Subject"].startswith("Muster: a Bcc: eve@example.org <!channel>")
    assert found["Auto-Submitted"] == "auto-generated"
    assert "\x1b" not in found.get_content()
    assert "     muster effort extend whisper" in found.get_content()
    assert b"\nBcc:" not in server.raw[0]


def test_a_digest_by_e_mail_has_the_headline_as_its_subject() -> None:
    with postman() as server:
        sender(mail(server.port)).send(digest_of_one("Größe: 8 → 3"))
    [(_, _, found)] = server.mails
    assert found["Subject"] == "Muster: Today needs one answer from you."
    assert "Größe: 8 → 3" in found.get_content()


def test_e_mail_goes_over_tls_with_a_login_and_a_password_from_a_file(tmp_path: Path) -> None:
    pair = certificate(tmp_path)
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    with postman(pair) as server:
        channel = mail(
            server.port,
            tls="starttls",
            ca_file=str(pair[0]),
            user=USER,
            password_file=str(tmp_path / "password"),
        )
        sender(channel).send(one())
        wrong = msgspec.structs.replace(channel, password="wrong", password_file=None)
        said = str(refusal(wrong, one()))
    assert server.logins[0] == (USER, PASSWORD, True)
    assert len(server.mails) == 1
    assert said == "it does not accept the user and password"


def test_a_certificate_that_nobody_vouches_for_gets_no_password(tmp_path: Path) -> None:
    with postman(certificate(tmp_path)) as server:
        channel = mail(server.port, tls="starttls", user=USER, password=PASSWORD)
        assert "certificate is not trusted" in str(refusal(channel, one()))
    assert server.logins == []


def test_a_server_without_tls_gets_no_mail_if_there_should_be() -> None:
    with postman() as server:
        assert str(refusal(mail(server.port, tls="starttls"), one())) == "it offers no TLS or login"
    assert server.mails == []


def test_an_address_that_is_refused_is_refused_for_good() -> None:
    with postman() as server:
        server.refused.add("ana@example.org")
        refused = refusal(mail(server.port), one())
    assert (str(refused), refused.for_good) == ("the address of ana is refused", True)


# --- Commands -----------------------------------------------------------------------------------------


def script(folder: Path, text: str) -> Channel:
    path = folder / "tell"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return Channel(kind="command", command=(str(path), "--to", "x y"), timeout_seconds=10.0)


def test_a_command_gets_the_message_on_its_input_and_in_its_environment(tmp_path: Path) -> None:
    text = f'cat > {tmp_path}/in; env > {tmp_path}/env; echo "$2" > {tmp_path}/words'
    sender(script(tmp_path, text)).send(one("it is\x1b[31m red\nand new"))
    read = json.loads((tmp_path / "in").read_text())
    assert read["text"].splitlines()[0] == "it is\N{REPLACEMENT CHARACTER}[31m red and new"
    assert read["messages"][0]["about"] == "effort:whisper"
    environment = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert environment["MUSTER_TO"] == "ana"
    assert environment["MUSTER_HEADLINE"] == "it is\N{REPLACEMENT CHARACTER}[31m red and new"
    assert environment["MUSTER_ACTION"] == "muster effort extend whisper"
    assert "MUSTER_HOME" not in environment
    assert (tmp_path / "words").read_text() == "x y\n"


def test_a_command_that_fails_or_is_not_there_says_so(tmp_path: Path) -> None:
    assert str(refusal(script(tmp_path, "exit 3"), one())) == "its command ended with 3"
    gone = Channel(kind="command", command=(str(tmp_path / "gone"),))
    assert str(refusal(gone, one())) == "its command can't be started: No such file or directory"


def test_a_command_that_does_not_end_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    channel = script(tmp_path, f"sleep 60 & echo $! > {tmp_path}/child; sleep 60")
    channel = msgspec.structs.replace(channel, timeout_seconds=1.0)
    assert str(refusal(channel, one())) == "its command has not ended within 1 s"
    child = (tmp_path / "child").read_text().strip()
    until(lambda: not _lives(child), "the child to end")


def _lives(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


# --- Couriers -----------------------------------------------------------------------------------------


class Outcome:
    def __init__(self) -> None:
        self.over, self.trouble = threading.Event(), "not yet"

    def __call__(self, trouble: NotTaken | None) -> None:
        self.trouble = str(trouble)
        self.over.set()

    def waited(self) -> str:
        assert self.over.wait(10)
        return self.trouble


def test_a_courier_tries_again_until_it_is_taken_and_says_it_once(caplog: pytest.LogCaptureFixture) -> None:
    outcome = Outcome()
    with web(503, 503, 503) as server, caplog.at_level(logging.WARNING, "muster"):
        courier = Courier("hook", sender(Channel(kind="webhook", url=server.url)), (0.0,) * 5)
        assert courier.carry(one, outcome)
        assert outcome.waited() == "None"
        courier.close()
    assert len(server.received) == 1
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "channel hook does not take messages: it answers with status 503",
        "channel hook takes messages again",
    ]
    assert courier.trouble is None


def test_a_courier_gives_up_after_six_tries() -> None:
    outcome = Outcome()
    with web(*[500] * 20) as server:
        courier = Courier("hook", sender(Channel(kind="webhook", url=server.url)), (0.0,) * 5)
        courier.carry(one, outcome)
        assert outcome.waited() == "it answers with status 500"
        assert len(server.statuses) == 20 - 6
        assert courier.trouble == "it answers with status 500"
        courier.close()


def test_what_is_refused_for_good_is_not_tried_again_and_holds_up_nobody() -> None:
    first, second = Outcome(), Outcome()
    with web(404) as server:
        courier = Courier("hook", sender(Channel(kind="webhook", url=server.url)), (3600.0,))
        courier.carry(one, first)
        courier.carry(one, second)
        assert first.waited() == "it answers with status 404"
        assert second.waited() == "None"
        courier.close()


def test_what_is_not_wanted_any_more_is_not_sent() -> None:
    outcome = Outcome()
    with web() as server:
        courier = Courier("hook", sender(Channel(kind="webhook", url=server.url)))
        courier.carry(lambda: None, outcome)
        assert outcome.waited() == "None"
        courier.close()
    assert server.received == []


def test_an_error_nobody_thought_of_is_told_by_its_name_alone(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def send(self, envelope: Envelope) -> None:
            raise LookupError("s3cret")

    outcome = Outcome()
    courier = Courier("hook", Broken(), ())
    courier.carry(one, outcome)
    assert outcome.waited() == "it failed (LookupError)"
    assert "s3cret" not in caplog.text
    courier.close()
