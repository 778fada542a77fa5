"""What jobs report, by a real server: from their output and from ``muster.report``, into the store and out.

A server may be killed at any moment: what a job printed is counted once, neither more nor less often.
"""

import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import servers
from muster.client import Refused
from muster.model.errors import BadInput
from muster.server.told import ReportBody
from muster.store.journal import Journal
from muster.store.rows import ReportRow
from servers import Server, View, until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """For those who do it no harm."""
    with Server() as server:
        yield server


@pytest.fixture
def mortal() -> Iterator[Server]:
    """To be killed."""
    with Server() as server:
        yield server


def rows_of(server: Server, job: str) -> list[ReportRow]:
    """From the store itself, when the server is gone."""
    journal = Journal.open(f"sqlite:///{server.home.database}")
    try:
        return journal.reports(job)
    finally:
        journal.close()


def finished(server: Server, job: View) -> View:
    with server.client() as client:
        return client.wait(job["id"], servers.PATIENCE_SECONDS)


def values_of(server: Server, job: View, name: str) -> list[float | str]:
    with server.client() as client:
        found = {one["name"]: one for one in client.metrics_of(job["id"], 10_000)["series"]}
    return [point["value"] for point in found[name]["points"]] if name in found else []


def python(server: Server, program: str, **options: object) -> View:
    with server.client() as client:
        return client.submit([sys.executable, "-u", "-c", program], **options)


def test_numbers_in_lines_of_json_are_reports(server: Server) -> None:
    lines = [
        "hello",
        '{"step": 1, "loss": 0.5, "note": "fine", "done": true}',
        '{"global_step": 2, "loss": NaN}',
        '{"epoch": 3, "loss": -Infinity, "nested": {"a": 1}}',
        '{"broken": 1',
        '["loss", 1]',
        '\x1b[32m{"step": 4, "loss": 1e-3}\x1b[0m',
        '  {"loss": 7}',
    ]
    (server.work / "lines").write_text("\n".join(lines))  # the last without its end
    view = finished(server, server.sh(f"cat {server.work}/lines"))
    assert view["metrics"] == {"loss": 7.0, "epoch": 3.0}
    with server.client() as client:
        series = {one["name"]: one for one in client.metrics_of(view["id"])["series"]}
    points = [(point["step"], point["value"]) for point in series["loss"]["points"]]
    assert points == [(1, 0.5), (2, "nan"), (3, "-inf"), (4, 1e-3), (None, 7)]
    assert (series["loss"]["least"], series["loss"]["greatest"]) == (1e-3, 7)


def test_a_pattern_finds_numbers_in_text(server: Server) -> None:
    text = "epoch 1 of 3: loss 0.5 acc 40%\nepoch 2 of 3: loss nan acc 50%\nelapsed 12 s"
    (server.work / "lines").write_text(text)
    pattern = "pattern:epoch {step} of ... loss {loss} acc {acc}"
    view = finished(server, server.sh(f"cat {server.work}/lines", metrics=pattern))
    assert view["metrics"] == {"loss": "nan", "acc": 0.5}
    assert values_of(server, view, "acc") == [0.4, 0.5]


def test_a_progress_bar_that_rewrites_its_line_is_read(server: Server) -> None:
    program = "for i in range(1, 6): print(f'\\r{i*20:3d}%|{chr(9608)*i} | {i}/5 [loss={1/i:.3f}]', end='')"
    view = finished(server, python(server, program, metrics="pattern:{percent}%|... [loss={loss}]"))
    assert values_of(server, view, "loss") == [1.0, 0.5, 0.333, 0.25, 0.2]


def test_only_what_is_reported_counts_when_the_job_says_so(server: Server) -> None:
    program = "import muster; print('{\"loss\": 1}'); muster.report(acc=0.5, step=1)"
    assert finished(server, python(server, program, metrics="report"))["metrics"] == {"acc": 0.5}


def test_what_is_reported_just_before_the_end_counts(server: Server) -> None:
    program = "import muster\nfor i in range(300): muster.report(i=i, step=i)"
    view = finished(server, python(server, program))
    assert values_of(server, view, "i") == list(range(300))
    assert view["metrics"] == {"i": 299.0}


def test_a_long_last_burst_is_read_before_the_end_is_taken_in(server: Server) -> None:
    """More than is read at once, and more reports than at once."""
    lines = "".join(f'{{"i": {i}, "text": "{"x" * 900}"}}\n' for i in range(3000))
    (server.work / "lines").write_text(lines)
    view = finished(server, server.sh(f"cat {server.work}/lines"))
    assert view["metrics"] == {"i": 2999.0}
    assert values_of(server, view, "i") == list(range(3000))


PRINTS = """
import os, sys, time
for i in range(400):
    while i % 100 == 0 and not os.path.exists(f'{sys.argv[1]}{i}'):
        time.sleep(0.01)
    print('{"i": %d}' % i, flush=True)
    sys.stdout.write('{"half": '); sys.stdout.flush()
    time.sleep(0.005)
    print('%d}' % i, flush=True)
"""


def test_a_server_that_is_killed_again_and_again_loses_no_report_and_doubles_none(mortal: Server) -> None:
    go = str(mortal.work / "go")
    with mortal.client() as client:
        job = client.submit([sys.executable, "-c", PRINTS, go], success="i > 1000")
    for first in (0, 100, 200):
        Path(f"{go}{first}").touch()
        until(lambda: len(values_of(mortal, job, "i")) > first + 20, "reports")  # noqa: B023
        mortal.kill()
        mortal.start()
    Path(f"{go}300").touch()
    finished(mortal, job)
    mortal.terminate()
    rows = rows_of(mortal, job["id"])
    for name in ("i", "half"):
        said = [row.report.values[name] for row in rows if name in row.report.values]
        assert said == list(range(400))
    assert [row.number for row in rows] == list(range(800))


def test_what_was_printed_while_no_server_was_there_counts(mortal: Server) -> None:
    go = mortal.work / "go"
    job = mortal.sh(f"echo '{{\"i\": 1}}'; until [ -e {go} ]; do sleep 0.02; done; echo '{{\"i\": 2}}'")
    until(lambda: values_of(mortal, job, "i") == [1], "the first report")
    mortal.kill()
    go.touch()
    until(lambda: not mortal.processes(), "the job's end")
    mortal.start()
    assert finished(mortal, job)["metrics"] == {"i": 2.0}
    assert values_of(mortal, job, "i") == [1, 2]


def test_the_last_values_are_known_after_a_restart(mortal: Server) -> None:
    job = mortal.sh("echo '{\"loss\": 0.25}'; sleep 100")
    with mortal.client() as client:
        until(lambda: client.job(job["id"])["state"] == "RUNNING", "the start")
        client.report(job["id"], {"acc": 0.5, "odd": "nan"}, 7)
    until(lambda: values_of(mortal, job, "loss"), "the line")
    mortal.kill()
    mortal.start()
    with mortal.client() as client:
        assert client.job(job["id"])["metrics"] == {"acc": 0.5, "odd": "nan", "loss": 0.25}
    said = mortal.muster("show", job["id"]).stdout
    assert "acc=0.5, odd=nan, loss=0.25" in said


def test_an_answered_report_survives_a_kill_at_once(mortal: Server) -> None:
    job = mortal.sh("sleep 100", cpus="0.01")
    with mortal.client() as client:
        until(lambda: client.job(job["id"])["state"] == "RUNNING", "the start")
        client.report_many(job["id"], [{"values": {"loss": i}, "step": i} for i in range(50)])
    mortal.kill()
    rows = rows_of(mortal, job["id"])
    assert [(row.report.step, row.report.values) for row in rows] == [(i, {"loss": i}) for i in range(50)]
    assert all(row.ran_seconds is not None and row.report.source == "report" for row in rows)


def test_reports_of_several_at_once_are_all_kept(server: Server) -> None:
    jobs = [server.sh("sleep 100", cpus="0.01") for _ in range(4)]

    def tell(job: View) -> None:
        with server.client() as client:
            until(lambda: client.job(job["id"])["state"] == "RUNNING", "the start")
            for i in range(100):
                client.report(job["id"], {"i": i})

    threads = [threading.Thread(target=tell, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(values_of(server, job, "i") == list(range(100)) for job in jobs)


TELLS = """
import muster, os, sys, time
for i in range(200):
    muster.report(i=i)
    time.sleep(0.01)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
"""


def test_who_reports_while_there_is_no_server_tells_the_next_one(mortal: Server) -> None:
    go = mortal.work / "go"
    with mortal.client() as client:
        job = client.submit([sys.executable, "-c", TELLS, str(go)])
    until(lambda: len(values_of(mortal, job, "i")) > 20, "some reports")
    mortal.kill()
    mortal.start()
    go.touch()
    finished(mortal, job)
    said = values_of(mortal, job, "i")
    assert list(dict.fromkeys(said)) == list(range(200))  # what was not answered was told again


def test_times_that_a_job_tells_lie_within_its_life(server: Server) -> None:
    job = server.sh("sleep 100", cpus="0.01")
    with server.client() as client:
        until(lambda: client.job(job["id"])["state"] == "RUNNING", "the start")
        client.report_many(job["id"], [{"values": {"a": 1}, "at": at} for at in (0, 1e12)])
        view = client.job(job["id"])
        points = client.metrics_of(job["id"])["series"][0]["points"]
    assert points[0]["at"] == pytest.approx(view["started_at"])
    assert points[0]["ran_seconds"] == 0
    assert points[1]["at"] < 1e11


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"values": {f"n{i}": 1 for i in range(65)}}, "at most 64 values"),
        ({"values": {"n" * 129: 1}}, "length <= 128"),
        ({"values": {"": 1}}, "length >= 1"),
        ({"values": {"a\x1b[2J": 1}}, "not printable"),
        ({"values": {"loss": "low"}}, "Invalid enum value 'low'"),
        ({"values": {"loss": True}}, "Expected"),
        ({"reports": [{"values": {"a": 1}}] * 1001}, "length <= 1000"),
        ({"reports": [{"step": 1}]}, "values"),
    ],
)
def test_what_can_not_be_reported_is_refused_with_a_sentence(body: object, why: str) -> None:
    known = msgspec.json.Decoder(ReportBody)
    with pytest.raises((msgspec.ValidationError, BadInput), match=why):
        known.decode(json.dumps(body)).told()


def test_a_job_that_does_not_run_can_not_be_reported_on(server: Server) -> None:
    job = server.sh("true", hold=True)
    with server.client() as client:
        with pytest.raises(Refused, match="is not running"):
            client.report(job["id"], {"loss": 1})
        client.release(job["id"])
        client.wait(job["id"], servers.PATIENCE_SECONDS)
        with pytest.raises(Refused, match="has already ended"):
            client.report(job["id"], {"loss": 1})
