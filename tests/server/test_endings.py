"""What follows from an attempt's end, with a real server and real jobs."""

from collections.abc import Iterator

import pytest

from servers import Server, View, until

MEMORY = "x = bytearray({} << 20); import time; time.sleep(0.2)"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server()
    (made.home.path / "muster.toml").write_text('[monitor]\nperiod = "1s"\n')
    with made:
        yield made


def ended(server: Server, *command: str, **options: object) -> View:
    with server.client() as client:
        return client.wait(client.submit(list(command), **options)["id"])


def enforces_memory(server: Server) -> bool:
    with server.client() as client:
        limits = client.nodes()[0]["limits"]
    return any(one["what"] == "memory" and one["how"] == "enforced" for one in limits)


def test_a_failure_is_told_with_its_cause_and_the_line_that_shows_it(server: Server) -> None:
    view = ended(server, "python3", "-c", "import there_is_no_such_module")
    assert view["cause"].startswith("missing module")
    assert "there_is_no_such_module" in view["cause"]


def test_a_success_has_no_cause(server: Server) -> None:
    assert ended(server, "true")["cause"] is None


def test_who_was_stopped_is_told_by_whom(server: Server) -> None:
    with server.client() as client:
        job = client.submit(["sleep", "100"])["id"]
        until(lambda: client.job(job)["state"] == "RUNNING", "its start")
        client.stop(job, because="wrong data")
        view = client.wait(job)
    assert view["cause"].startswith("killed by its user")
    assert "wrong data" in view["cause"]


def test_who_runs_out_of_memory_is_run_again_with_more_and_it_is_said(server: Server) -> None:
    if not enforces_memory(server):
        pytest.skip("no memory limit is enforced here")
    view = ended(server, "python3", "-c", MEMORY.format(70), memory="60M", name="grows")
    assert (view["outcome"], view["attempt"]) == ("SUCCEEDED", 2)
    assert view["memory_bytes"] > 60 << 20


def test_who_never_has_enough_ends_out_of_memory(server: Server) -> None:
    if not enforces_memory(server):
        pytest.skip("no memory limit is enforced here")
    view = ended(server, "python3", "-c", MEMORY.format(2000), memory="40M", name="hog")
    assert view["outcome"] == "OUT_OF_MEMORY"
    assert view["attempt"] == 3
    assert view["cause"].startswith("host out of memory")


def test_a_job_is_told_how_well_it_used_what_it_held(server: Server) -> None:
    view = ended(server, "sleep", "2.5", memory="100M")
    told = dict(view["efficiency"])
    assert set(told) >= {"measured", "cpu", "bound by"}
    assert told["measured"].startswith(("9", "100"))


def test_the_same_work_is_right_sized_by_what_it_needed(server: Server) -> None:
    command = ["python3", "-c", "b = bytearray(30 << 20); import time; time.sleep(1.2)"]
    with server.client() as client:
        first = client.submit(command, memory="500M", name="steady-1", right_size=True)
        assert "too few runs" in first["warnings"][0]
        ids = client.submit_many(
            {"command": command, "memory": "500M", "name": f"steady-{n}"} for n in range(2, 7)
        )
        for job in (first["id"], *ids):
            assert client.wait(job)["outcome"] == "SUCCEEDED"
        [advice] = [one for one in client.advice(mine=True) if one["name"] == "steady-"]
        assert "--mem" in advice["flags"]
        assert client.advice(owner="nobody-else") == []
        assert "steady-" in server.muster("advise", "--mine").stdout
        view = client.submit(command, memory="500M", name="steady-9", right_size=True)
        assert 30 << 20 < view["memory_bytes"] < 200 << 20
        assert any("runs" in warning for warning in view["warnings"])
        assert client.wait(view["id"])["outcome"] == "SUCCEEDED"
        assert not [one for one in client.advice() if one["name"] == "steady-"], "it asks for less now"


def test_a_log_that_is_no_text_harms_nobody(server: Server) -> None:
    view = ended(server, "sh", "-c", "head -c 300000 /dev/urandom; exit 7")
    assert view["cause"].startswith("its own error")
