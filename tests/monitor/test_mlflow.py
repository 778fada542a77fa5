"""Reports from MLflow: a real server and a real client; and servers that are none, or none to be trusted."""

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.engines.local.inventory import Machine
from muster.engines.local.orders import start_order
from muster.engines.local.trackers import CONTEXT, URI, mark, tracker_variables
from muster.home import Home
from muster.model.errors import BadInput
from muster.model.events import Seat
from muster.model.job import Job, Shape, single
from muster.model.node import Node
from muster.model.plan import Start
from muster.model.run import Metrics, Run
from muster.monitor.reports import mlflow
from muster.monitor.reports.mlflow import Mlflow
from muster.monitor.reports.report import Report
from muster.monitor.reports.tracker import address, authorization

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-mlflow/bin/python"
JOB = Path(__file__).with_name("mlflow_job.py")
SERVER = "lab7-0a1b2c3d"
_SERVES_WITHIN_SECONDS = 120.0


def _source(url: str, **given: Any) -> Mlflow:
    return Mlflow("12", 1, url, **({"since": 0.0, "server": SERVER, "environment": {}} | given))


def _values(reports: list[Report]) -> list[tuple[float | None, dict[str, float]]]:
    return [(report.step, report.values) for report in reports]


# --- The real ones --------------------------------------------------------------------------------


class _Server:
    """MLflow's own, on a port of this machine."""

    def __init__(self, folder: Path) -> None:
        port = _free_port()
        self.url, self._log = f"http://127.0.0.1:{port}", folder / "server.log"
        command = [str(PYTHON), "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
        command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db"]
        command += ["--default-artifact-root", str(folder)]
        quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command, env=os.environ | quiet, cwd=folder, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self) -> None:
        until = time.monotonic() + _SERVES_WITHIN_SECONDS
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5).close()
            except OSError:
                assert time.monotonic() < until, self._log.read_text()
                time.sleep(0.1)
            else:
                return

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


class _Job:
    """A process that logs with MLflow's client, in the environment that a job has."""

    def __init__(self, attempt: int, url: str, **given: str) -> None:
        variables = tracker_variables("12", attempt, SERVER, Metrics("mlflow", url=url), given)
        self._process = subprocess.Popen(
            [str(PYTHON), str(JOB)],
            env=os.environ | given | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def does(self, line: str) -> str:
        """The id of the run that it is in then."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(line + "\n")
        process.stdin.flush()
        answer = process.stdout.readline().strip()
        assert answer, line
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.mark.skipif(not PYTHON.exists(), reason="there is no MLflow here; make .venv-mlflow installs it")
def test_what_a_job_logs_with_mlflow_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One story, since all of MLflow takes long to start; and as patient as a busy machine needs."""
    monkeypatch.setattr(mlflow, "_ROUND_SECONDS", 60.0)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(contextlib.closing(_Server(tmp_path)))
        url, mine = server.url, {CONTEXT: '{"mine": "kept"}'}
        job, second = (stack.enter_context(contextlib.closing(_Job(i, url, **mine))) for i in (1, 2))
        server.wait()
        began = time.time()
        source = _source(url, since=began)
        assert source.poll(time.time()) == []
        assert source.trouble is None

        run = job.does("begin")
        job.does("log 1 val_acc=0.5 val_loss=2.0")
        job.does("log 2 val_acc=0.75 system/cpu=3")
        found = source.poll(time.time())
        assert _values(found) == [(1, {"val_acc": 0.5, "val_loss": 2.0}), (2, {"val_acc": 0.75})]
        assert {(r.job, r.attempt, r.source) for r in found} == {("12", 1, "mlflow")}
        assert all(began <= report.at <= time.time() for report in found)
        _check_tags(url, run)
        assert source.poll(time.time()) == []

        job.does("log 3 val_acc=nan")
        [report] = source.poll(time.time())
        assert math.isnan(report.values["val_acc"])
        _check_restart(job, source, url, began)
        _check_many(job, source)
        _check_another_experiment(job, source)
        _check_second_attempt(second, run, url)


def _check_tags(url: str, run: str) -> None:
    """Those of Muster and the user's own."""
    with urllib.request.urlopen(f"{url}/api/2.0/mlflow/runs/get?run_id={run}") as answer:
        tags = {tag["key"]: tag["value"] for tag in json.load(answer)["run"]["data"]["tags"]}
    own = {"muster.job": "12", "muster.attempt": "1", "muster.server": SERVER, "mine": "kept"}
    assert own.items() <= tags.items()


def _check_restart(job: _Job, source: Mlflow, url: str, began: float) -> None:
    job.does("log 4 val_acc=0.8")
    again = _source(url, since=began, position=source.position)
    assert _values(again.poll(time.time())) == _values(source.poll(time.time())) == [(4, {"val_acc": 0.8})]


def _check_another_experiment(job: _Job, source: Mlflow) -> None:
    """It is not looked for at every poll; at the last one in any case."""
    for line in ("end", "experiment elsewhere", "begin", "log 1 elsewhere=1"):
        job.does(line)
    assert _values(source.poll(time.time(), last=True)) == [(1, {"elsewhere": 1.0})]


def _check_many(job: _Job, source: Mlflow) -> None:
    job.does("many loss 2500")
    found = _until_not_behind(source)
    assert [report.values for report in found] == [{"loss": i / 1000} for i in range(2500)]
    assert source.poll(time.time()) == []


def _until_not_behind(source: Mlflow) -> list[Report]:
    found = source.poll(time.time())
    while source.is_behind:
        found += source.poll(time.time())
    return found


def _check_second_attempt(second: _Job, run: str, url: str) -> None:
    """It goes on with the run of the first, at a step that was reached before."""
    time.sleep(2.6)  # the times of the many are a millisecond apart, from the begin of the run
    began = time.time()
    second.does(f"begin {run}")
    second.does("log 2 val_acc=0.7")
    source = Mlflow("12", 2, url, since=began, server=SERVER, environment={})
    found = source.poll(time.time())
    assert [(report.attempt, report.step, report.values) for report in found] == [(2, 2.0, {"val_acc": 0.7})]


# --- What a job finds in its environment ----------------------------------------------------------


def _variables(**given: str) -> dict[str, str]:
    return tracker_variables("12_3", 2, SERVER, Metrics("mlflow", url="http://127.0.0.1:5000"), given)


def test_the_tags_of_a_run_say_whose_it_is() -> None:
    own = {"muster.job": "12_3", "muster.attempt": "2", "muster.server": SERVER}
    assert json.loads(_variables()[CONTEXT]) == own
    assert (
        json.loads(_variables(MLFLOW_RUN_CONTEXT='{"a": "b", "muster.job": "1"}')[CONTEXT])
        == {"a": "b"} | own
    )


@pytest.mark.parametrize("context", ["", "no json", "[1]", "[" * 100_000])
def test_tags_that_mlflow_could_not_read_are_none(context: str) -> None:
    assert len(json.loads(_variables(MLFLOW_RUN_CONTEXT=context)[CONTEXT])) == 3


def test_the_server_that_the_user_has_set_stays() -> None:
    assert _variables()[URI] == "http://127.0.0.1:5000"
    assert URI not in _variables(MLFLOW_TRACKING_URI="http://mine:1")


def test_two_musters_on_one_machine_have_different_marks(tmp_path: Path) -> None:
    assert mark(Home(tmp_path / "a")) != mark(Home(tmp_path / "b"))


def _order(metrics: Metrics | None, environment: Callable[[str], dict[str, str]]) -> dict[str, str]:
    job = Job("12", single(cpus_milli=1000), 0.0, run=Run(("true",), environment="key"), metrics=metrics)
    machine = Machine(Node("lab7", cpus_milli=1000, memory_bytes=1))
    seat = Seat("lab7", Shape(cpus_milli=1000))
    order = start_order(job, Start("12", 1, (seat,)), Home("/home"), machine, environment)
    variables: dict[str, str] = order["variables"]
    return variables


def test_a_job_whose_metrics_come_from_mlflow_starts_with_these_variables() -> None:
    kept = {"key": {CONTEXT: '{"mine": "kept"}'}}
    variables = _order(Metrics("mlflow", url="http://127.0.0.1:5000"), kept.__getitem__)
    assert variables[URI] == "http://127.0.0.1:5000"
    assert json.loads(variables[CONTEXT]).keys() == {"mine", "muster.job", "muster.attempt", "muster.server"}


@pytest.mark.parametrize("metrics", [None, Metrics("tensorboard", path="/runs")])
def test_of_other_jobs_the_environment_is_not_even_looked_up(metrics: Metrics | None) -> None:
    assert CONTEXT not in _order(metrics, {}.__getitem__)


# --- Who may be asked -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:5000", "http://localhost:5000/", "https://[::1]:5000", "http://LOCALHOST/mlflow/"],
)
def test_this_machine_may_be_asked(url: str) -> None:
    assert address(url).path in ("", "/mlflow")


def test_another_host_may_be_asked_once_it_is_named() -> None:
    with pytest.raises(BadInput, match="mlflow_hosts"):
        address("https://mlflow.lab.org")
    assert address("https://mlflow.lab.org", ["MLflow.lab.org"]) == ("mlflow.lab.org", 443, "", True)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file:///etc/passwd",
        "ftp://127.0.0.1",
        "127.0.0.1:5000",
        "http://",
        "http://127.0.0.1:port",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:5000/a b",
        "http://127.0.0.1:5000/\r\nX: y",
        "http://user:password@127.0.0.1:5000",
        "http://127.0.0.1:5000/?a=b",
        "http://169.254.169.254/latest",
        "http://127.0.0.1.nip.io",
        "http://[::1",
        "http://2130706433",
        "http://127.0.0.1:5000/" + "a" * 5000,
    ],
)
def test_any_other_address_is_refused_in_a_sentence(url: str) -> None:
    with pytest.raises(BadInput):
        address(url)


def test_who_asks_is_said_as_mlflows_own_client_says_it() -> None:
    both = {"MLFLOW_TRACKING_USERNAME": "ana", "MLFLOW_TRACKING_PASSWORD": "pw", "MLFLOW_TRACKING_TOKEN": "t"}
    assert authorization(both) == "Basic YW5hOnB3"
    assert authorization({"MLFLOW_TRACKING_TOKEN": "t"}) == "Bearer t"
    assert authorization({"MLFLOW_TRACKING_TOKEN": "t\r\nX: y"}) is None
    assert authorization({}) is None


def test_a_job_that_could_end_the_question_early_is_refused() -> None:
    with pytest.raises(BadInput):
        Mlflow("1' or 'a' = 'a", 1, "http://127.0.0.1:1", since=0.0, server=SERVER, environment={})


# --- Servers that are none ------------------------------------------------------------------------

Answer = Callable[[socket.socket], None]


@contextlib.contextmanager
def _served(*answers: Answer) -> Iterator[tuple[str, list[bytes]]]:
    """A server that gives these answers, the last one again and again; and what it was asked."""
    listener = socket.create_server(("127.0.0.1", 0))
    asked: list[bytes] = []
    over = threading.Event()

    def serve() -> None:
        for number in range(1000):
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    if over.is_set():
                        return
                    asked.append(connection.recv(65536))
                    answers[min(number, len(answers) - 1)](connection)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
    finally:
        over.set()
        with contextlib.suppress(OSError):
            socket.create_connection(listener.getsockname()).close()
        thread.join()
        listener.close()


def _said(data: bytes) -> Answer:
    return lambda connection: connection.sendall(data)


def _json(what: object, status: int = 200) -> Answer:
    body = json.dumps(what).encode()
    head = f"HTTP/1.1 {status} Said\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return _said(head.encode() + body)


def _drip(connection: socket.socket) -> None:
    """A byte now and then, for ever: never silent for long, and never done."""
    with contextlib.suppress(OSError):
        connection.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            connection.sendall(b"x")
            time.sleep(0.02)


EXPERIMENTS = _json({"experiments": [{"experiment_id": "0"}]})
NONE_AT_ALL = [
    ("nothing", _said(b""), "does not answer"),
    ("no HTTP", _said(b"SSH-2.0-OpenSSH_9.2\r\n"), "does not answer"),
    ("no JSON", _said(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), "something else"),
    ("other JSON", _json([1, 2, 3]), "something else"),
    ("deep JSON", _said(b"HTTP/1.1 200 OK\r\n\r\n" + b"[" * 1_000_000), "something else"),
    ("wrong types", _json({"experiments": [{"experiment_id": {"a": 1}}]}), "something else"),
    ("half of it", _said(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"), "something else"),
    ("no length", _said(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{"), "something else"),
    ("headers without end", _said(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 10_000), "does not answer"),
    (
        "a broken chunk",
        _said(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        "does not answer",
    ),
    ("too much", _said(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * (5 << 20)), "more than 4 MB"),
    ("elsewhere", _said(b"HTTP/1.1 302 Go\r\nLocation: http://10.0.0.1/\r\n\r\n"), "sends us elsewhere"),
    ("not you", _json({}, 401), "does not let us in"),
    ("a fault", _json({}, 500), "fails with status 500"),
    ("a drip", _drip, "in time"),
]


@pytest.mark.parametrize(
    ("answer", "said"), [case[1:] for case in NONE_AT_ALL], ids=[c[0] for c in NONE_AT_ALL]
)
def test_a_server_that_is_none_is_said_once_and_left_alone_for_a_while(
    answer: Answer, said: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlflow, "_ROUND_SECONDS", 0.3)
    with _served(answer) as (url, asked):
        source = _source(url)
        assert source.poll(1000.0) == []
        assert said in (source.trouble or "")
        before = len(asked)
        assert source.poll(1004.0) == []
        assert len(asked) == before
        source.poll(1006.0)
        assert len(asked) > before
    assert len(caplog.records) == 1


def test_pauses_grow_and_have_an_end() -> None:
    source = _source(f"http://127.0.0.1:{_free_port()}")
    tried = []
    for now in range(0, 3000, 5):
        source._trouble.now = None
        source.poll(float(now))
        tried += [now] if source.trouble else []
    assert tried[:6] == [0, 5, 15, 35, 75, 155]
    assert tried[-1] - tried[-2] == 300


def test_at_the_end_of_the_attempt_it_is_tried_once_more() -> None:
    source = _source(f"http://127.0.0.1:{_free_port()}")
    source.poll(0.0)
    source._trouble.now = None
    source.poll(1.0, last=True)
    assert source.trouble is not None
    assert not source.is_behind


def test_a_server_that_comes_back_is_no_trouble_any_more() -> None:
    with _served(_json({}, 500), _json({})) as (url, _):
        source = _source(url)
        source.poll(0.0)
        assert source.trouble is not None
        source.poll(10.0)
        assert source.trouble is None


def test_what_came_before_an_error_counts() -> None:
    last = {"key": "acc", "value": 0.5, "timestamp": 1000, "step": 1}
    runs = {
        "runs": [
            {"info": {"run_id": "r", "experiment_id": "0"}, "data": {"metrics": [last, last | {"key": "b"}]}}
        ]
    }
    with _served(EXPERIMENTS, _json(runs), _json({"metrics": [last]}), _json({}, 500)) as (url, _):
        source = _source(url)
        assert _values(source.poll(time.time())) == [(1, {"acc": 0.5})]
        assert "status 500" in (source.trouble or "")


def test_a_history_without_end_is_read_in_parts() -> None:
    """A page leads to the next for ever."""
    last = {"key": "acc", "value": 0.5, "timestamp": 1, "step": 1}
    runs = {"runs": [{"info": {"run_id": "r", "experiment_id": "0"}, "data": {"metrics": [last]}}]}
    tokens = (str(i) for i in range(1000))

    def page(connection: socket.socket) -> None:
        _json({"metrics": [], "next_page_token": next(tokens)})(connection)

    with _served(EXPERIMENTS, _json(runs), page) as (url, asked):
        source = _source(url)
        assert source.poll(0.0) == []
        assert source.is_behind
        assert len(asked) <= 2 + mlflow._MOST_PAGES


def test_more_metrics_than_can_be_followed_are_said() -> None:
    many = [{"key": f"m{i}", "value": 0.5, "timestamp": 1, "step": 1} for i in range(100)]
    runs = {"runs": [{"info": {"run_id": "r", "experiment_id": "0"}, "data": {"metrics": many}}]}
    with _served(EXPERIMENTS, _json(runs), *[_json({"metrics": many[:1]})] * 20, _json(runs)) as (url, _):
        source = _source(url)
        while source.poll(time.time()) or source.is_behind:
            pass
        assert "more than 64 metrics" in (source.trouble or "")
        assert len(source.position) < 3000


def test_numbers_beyond_all_measure_do_no_harm() -> None:
    odd = [
        {"key": "acc", "value": "Infinity", "timestamp": "5", "step": "7"},
        {"key": "acc", "value": "no number", "timestamp": 6, "step": 1},
        {"key": "acc", "value": 1, "timestamp": 1 << 63, "step": 1},
        {"key": "acc", "value": 1, "timestamp": 8, "step": -(1 << 63)},
    ]
    runs = {"runs": [{"info": {"run_id": "r", "experiment_id": "0"}, "data": {"metrics": odd[:1]}}]}
    with _served(EXPERIMENTS, _json(runs), _json({"metrics": odd})) as (url, _):
        source = _source(url)
        [first, second] = source.poll(time.time())
    assert (first.step, first.values) == (7.0, {"acc": math.inf})
    assert math.isnan(second.values["acc"])
    assert (
        Mlflow("12", 1, url, source.position, since=0.0, server=SERVER, environment={}).position
        == source.position
    )


def test_a_server_whose_certificate_can_not_be_had_is_not_trusted() -> None:
    with _served(_json({})) as (url, _):
        source = _source(url.replace("http:", "https:"))
        assert source.poll(0.0) == []
        assert "can't be trusted" in (source.trouble or "")


def test_the_token_is_sent_and_nothing_else_of_the_environment() -> None:
    with _served(_json({})) as (url, asked):
        _source(url, environment={"MLFLOW_TRACKING_TOKEN": "secret", "OTHER": "private"}).poll(0.0)
    assert b"Authorization: Bearer secret" in asked[0]
    assert b"private" not in asked[0]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
