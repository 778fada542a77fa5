"""The client on the wire."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from canned import Canned, Chunks, Refusal, ended, serving, view

import muster
from muster.client import Client, NoServer, Refused
from muster.home import Home
from muster.model.errors import BadInput, MusterError
from muster.wire import address, query


def test_a_job_is_submitted_with_the_place_it_comes_from(server: Canned, home: Path) -> None:
    server.answers["POST /jobs"] = view()
    with Client() as client:
        assert client.submit(["python", "x.py"], gpus=1, memory="8G", purpose="To know.")["id"] == "12"
    (_, _, body) = server.asked[0]
    assert body["command"] == ["python", "x.py"]
    assert body["options"] == {"gpus": 1, "memory": "8G", "for": "To know."}
    assert body["cwd"] == str(home)
    assert body["environment"]["MUSTER_HOME"] == str(home)
    before = os.umask(0o027)
    try:
        assert body["umask"] == before
    finally:
        os.umask(before)


def test_a_path_is_read_and_a_text_is_sent(server: Canned, home: Path) -> None:
    server.answers["POST /jobs"] = view()
    (home / "train.sh").write_text("echo\n")
    with Client() as client:
        client.submit(script=home / "train.sh", args=["3"])
        client.submit(yaml="run: x")
    first, second = (body for _, _, body in server.asked)
    assert (first["script"], first["script_name"], first["args"]) == ("echo\n", "train.sh", ["3"])
    assert second["yaml"] == "run: x"


def test_variables_that_are_no_text_are_left_out(server: Canned, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD", os.fsdecode(b"\xff"))
    server.answers["POST /jobs"] = view()
    with Client() as client:
        client.submit(["true"])
    assert "ODD" not in server.asked[0][2]["environment"]


def test_one_connection_is_kept_for_many_questions(server: Canned) -> None:
    server.answers["GET /jobs/12"] = view()
    with Client() as client:
        for _ in range(5):
            client.job("12")
    assert server.connections == 1


def test_a_connection_that_the_server_closed_is_opened_again(home: Path) -> None:
    client = Client()
    for _ in range(2):
        with serving(home) as server:
            server.answers["GET /health"] = {"version": "1"}
            assert client.health() == {"version": "1"}
        (home / "muster.sock").unlink()
    client.close()


def test_a_refusal_carries_the_servers_sentence_and_code(server: Canned) -> None:
    server.answers["GET /jobs/9"] = Refusal(404, "there is no job 9", 1)
    server.answers["POST /jobs"] = Refusal(422, "can never run", 2)
    with Client() as client:
        with pytest.raises(Refused, match="there is no job 9") as caught:
            client.job("9")
        assert (caught.value.status, caught.value.exit_code) == (404, 1)
        with pytest.raises(Refused) as caught:
            client.submit(["true"])
        assert caught.value.exit_code == 2


def test_without_a_server_it_is_said_how_to_start_one(home: Path) -> None:
    with Client() as client, pytest.raises(NoServer) as caught:
        client.health()
    assert str(caught.value) == f"no Muster server answers at {home}/muster.sock; start one with: muster up"
    assert caught.value.exit_code == 1


def test_the_socket_is_the_one_in_muster_s_home(home: Path) -> None:
    assert address(None).path == str(Home().socket)
    assert address(None, "/elsewhere").path == "/elsewhere/muster.sock"


@pytest.mark.parametrize(
    "url", ["host:1", "ftp://a:1", "http://a", "http://a:x", "http://:1", "unix:", "http://a:99999"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="write it like http://host:7777"):
        address(url)


def test_a_token_is_sent_and_one_with_line_breaks_is_not(server: Canned) -> None:
    server.answers["GET /whoami"] = {"name": "ana"}
    with Client(token="abc") as client:
        client.whoami()
    assert server.tokens == ["Bearer abc"]
    with pytest.raises(BadInput, match="MUSTER_TOKEN"):
        Client(token="a\r\nX: y").whoami()


def test_ids_can_t_leave_their_place_in_a_path(server: Canned) -> None:
    with Client() as client, pytest.raises(BadInput, match="not a job's id"):
        client.job("../health")
    assert server.asked == []


def test_nodes_are_drained_and_resumed_whole_or_by_gpu(server: Canned) -> None:
    server.answers["POST /nodes/gpu-1.lab/drain"] = server.answers["POST /nodes/gpu-1.lab/resume"] = {}
    with Client() as client:
        client.drain_node("gpu-1.lab", "fan")
        client.drain_node("gpu-1.lab", "fan", 0)
        client.resume_node("gpu-1.lab")
        client.resume_node("gpu-1.lab", device=0)
        with pytest.raises(BadInput, match="not a node's name"):
            client.resume_node("../jobs/1")
    assert [sent for _, _, sent in server.asked] == [
        {"because": "fan"},
        {"because": "fan", "device": 0},
        {},
        {"device": 0},
    ]


def test_questions_are_quoted() -> None:
    assert (
        query({"owner": "a&b é", "all": True, "mine": False, "team": None})
        == "?owner=a%26b%20%C3%A9&all=true"
    )
    assert query({}) == ""


def test_logs_come_in_pieces_and_are_bytes(server: Canned) -> None:
    server.answers["GET /jobs/12/log"] = Chunks(b"line 1\n", b"\xff\n")
    with Client() as client:
        assert list(client.logs("12", follow=True, offset=3)) == [b"line 1\n", b"\xff\n"]
    assert server.asked[0][1] == "/jobs/12/log?follow=true&offset=3"


def test_an_answer_that_breaks_off_is_no_answer(server: Canned) -> None:
    server.answers["GET /jobs/12/log"] = Chunks(b"line 1\n", cut=True)
    with Client() as client, pytest.raises(NoServer, match="went away"):
        list(client.logs("12"))


def test_events_are_views_and_comments_are_none(server: Canned) -> None:
    one, two = json.dumps(view()).encode(), json.dumps(view(state="RUNNING")).encode()
    server.answers["GET /events"] = Chunks(
        b": hello\n\n",
        b"event: job\ndata: " + one[:9],
        one[9:] + b"\n\n",
        b"event: job\ndata: " + two + b"\n\n",
    )
    with Client() as client:
        assert [found["state"] for found in client.events("12")] == ["QUEUED", "RUNNING"]


def test_a_wait_ends_with_the_job_even_if_the_stream_breaks(server: Canned) -> None:
    views = iter([view(), view(state="RUNNING"), view(state="RUNNING"), ended("SUCCEEDED")])
    server.answers["GET /events"] = Chunks(b": hello\n\n", cut=True)
    server.answers["GET /jobs/12"] = lambda _: next(views)
    with Client() as client:
        assert client.wait("12")["outcome"] == "SUCCEEDED"


def test_a_wait_has_a_limit_if_one_is_given(server: Canned) -> None:
    def silent(_: object) -> Chunks:
        time.sleep(0.3)
        return Chunks()

    server.answers["GET /events"] = silent
    server.answers["GET /jobs/12"] = view()
    with Client() as client, pytest.raises(MusterError, match="not ended within"):
        client.wait("12", timeout_seconds=0.05)


def test_something_else_that_answers_is_told_apart(server: Canned) -> None:
    server.answers["GET /health"] = Chunks(b"<html>")
    with Client() as client, pytest.raises(MusterError, match="does not speak like a Muster server"):
        client.health()


def test_the_package_offers_the_client_and_imports_it_late() -> None:
    assert muster.Client is Client
    with pytest.raises(AttributeError):
        _ = muster.nothing  # type: ignore[attr-defined]


REPORT = "import muster; muster.report(loss=0.5, step=3); muster.report(loss=float('nan')); print('on')"
IN_TURN = "import muster, time; muster.report(loss=1); time.sleep(0.5); muster.report(loss=2)"
MANY = "import muster; [muster.report(loss=i) for i in range(2000)]"


def reported(program: str = REPORT, **environment: str) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )


def test_a_report_reaches_the_server(server: Canned) -> None:
    server.answers["POST /jobs/12/report"] = view()
    assert reported(MUSTER_JOB_ID="12").stderr == ""
    told = [one for _, _, body in server.asked for one in body["reports"]]
    assert [(one["values"], one["step"]) for one in told] == [({"loss": 0.5}, 3.0), ({"loss": "nan"}, None)]
    assert told[0]["at"] <= told[1]["at"]


def test_a_report_that_is_refused_does_not_keep_the_next_one_back(server: Canned) -> None:
    server.answers["POST /jobs/12/report"] = Refusal(422, "not like this", 2)
    assert reported(IN_TURN, MUSTER_JOB_ID="12").stderr.count("\n") == 1
    assert len(server.asked) == 2


def test_a_report_that_the_server_could_not_write_is_told_again(server: Canned) -> None:
    server.answers["POST /jobs/12/report"] = Refusal(507, "the disk is full", 1)
    assert reported(IN_TURN, MUSTER_JOB_ID="12").stderr.count("\n") == 1
    first, *_, last = [body["reports"] for _, _, body in server.asked]
    assert first[0] == last[0]


def test_many_reports_share_a_few_requests_and_none_is_lost(server: Canned) -> None:
    server.answers["POST /jobs/12/report"] = view()
    assert reported(MANY, MUSTER_JOB_ID="12").stderr == ""
    bodies = [body["reports"] for _, _, body in server.asked]
    assert [one["values"]["loss"] for some in bodies for one in some] == list(range(2000))
    assert len(bodies) < 40


def test_outside_of_a_job_a_report_does_nothing(server: Canned) -> None:
    assert reported().stderr == ""
    assert server.asked == []


def test_a_report_that_fails_says_so_once_and_training_goes_on() -> None:
    done = reported(MUSTER_JOB_ID="12")
    assert done.stdout == "on\n"
    assert done.stderr.count("\n") == 1
    assert "report is not kept" in done.stderr


def test_a_value_that_is_no_number_is_no_reason_to_stop(
    server: Canned, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUSTER_JOB_ID", "12")
    muster.report(loss="high")  # type: ignore[arg-type]
    assert server.asked == []
    assert "report is not kept" in capsys.readouterr().err
