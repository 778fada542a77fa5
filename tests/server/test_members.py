"""Members of an array that are named together, ``12_[1-3,7]``: looked at, read and acted on as one."""

import json
from collections.abc import Iterator

import pytest

from muster.client import Client, Refused
from muster.model.errors import BadInput
from muster.server.members import ids_in
from servers import Server, until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[Client]:
    with server.client() as client:
        yield client


@pytest.fixture(scope="module")
def ended(server: Server, client: Client) -> str:
    """Four members, of which the third has failed."""
    script = "echo of $MUSTER_ARRAY_INDEX; test $MUSTER_ARRAY_INDEX != 3"
    array: str = server.sh(script, array="1-4", cpus=0.25)["id"]
    client.wait(array, 20.0)
    return array


def held(server: Server, members: str = "1-5") -> str:
    array: str = server.sh("sleep 60", array=members, cpus=0.1, hold=True)["id"]
    return array


# --- Ids ------------------------------------------------------------------------------------------


def test_an_id_speaks_of_the_members_it_names_each_once() -> None:
    assert ids_in("12_[1-3,7]") == ["12_1", "12_2", "12_3", "12_7"]
    assert ids_in("12_[3,1-3]") == ["12_3", "12_1", "12_2"]
    assert ids_in("12_3") == ["12_3"]
    assert ids_in("12") == ["12"]
    assert ids_in("s12-2") == ["s12-2"]
    assert ids_in("s12-2_[1-2]") == ["s12-2_1", "s12-2_2"]


@pytest.mark.parametrize(
    "wrong", ["12_[3-1]", "12_[]", "12_[1-200000]", "12_[1-3", "[1-3]", "12_1-3", "12_[1,]", "12-2", "s12-"]
)
def test_an_id_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(BadInput):
        ids_in(wrong)


# --- Looking --------------------------------------------------------------------------------------


def test_some_members_are_one_view_with_the_counts_of_just_those(server: Server, client: Client) -> None:
    array = held(server)
    client.release(f"{array}_2")
    until(lambda: client.job(f"{array}_2")["state"] == "RUNNING", "the second to run")
    view = client.job(f"{array}_[1-3]")
    assert (view["id"], view["state"], view["counts"]) == (
        f"{array}_[1-3]",
        "RUNNING",
        {"RUNNING": 1, "HELD": 2},
    )
    assert view["array"] == {"id": array, "first": 1, "last": 3, "count": 3}
    assert view["nodes"] == client.job(f"{array}_2")["nodes"]
    assert (view["log"], view["attempt"]) == (None, 0), "each has its own"
    client.stop(array)


def test_members_that_have_ended_are_told_as_one_too(client: Client, ended: str) -> None:
    good, bad = client.job(f"{ended}_[1-2,4]"), client.job(f"{ended}_[1-4]")
    assert (good["state"], good["outcome"], good["reason"]) == ("ENDED", "SUCCEEDED", "all succeeded")
    assert (bad["outcome"], bad["reason"], bad["exit_code"]) == ("FAILED", "1 of 4 failed", None)
    assert client.job(f"{ended}_1")["id"] == f"{ended}_1", "the view of one must not have changed"


def test_what_is_long_over_is_found_in_the_store() -> None:
    server = Server()
    (server.home.path / "muster.toml").write_text("[server]\nremembers = 1\n")
    with server, server.client() as client:
        array = server.sh("exit $MUSTER_ARRAY_INDEX", array="0-2", cpus=0.25)["id"]
        client.wait(array, 20.0)
        for job in ("true", "false"):
            client.wait(server.sh(job)["id"], 20.0)
        server.terminate()
        server.start()
        for named in (array, f"{array}_[0-2]"):
            view = client.job(named)
            assert (view["id"], view["outcome"], view["counts"]) == (named, "FAILED", {"ENDED": 3})
        assert len(client.page(job=array)["jobs"]) == 3
        with pytest.raises(Refused, match="has already ended"):
            client.stop(array)


def test_one_that_does_not_exist_is_named(client: Client, ended: str) -> None:
    for look in (client.job, client.why, client.stop, lambda job: b"".join(client.logs(job))):
        with pytest.raises(Refused, match=f"there is no job {ended}_5") as refused:
            look(f"{ended}_[3-7]")
        assert refused.value.status == 404


def test_why_answers_for_the_one_of_them_that_is_next(server: Server, client: Client) -> None:
    array = held(server)
    assert client.why(f"{array}_[2-4]")["id"] == f"{array}_2"
    client.stop(f"{array}_2")
    assert client.why(f"{array}_[2-4]")["id"] == f"{array}_3"
    client.stop(array)
    assert client.why(f"{array}_[2-4]")["state"] == "ENDED"


def test_each_can_be_listed_by_itself_living_or_ended(server: Server, client: Client, ended: str) -> None:
    listed = client.page(job=f"{ended}_[2-3]")["jobs"]
    assert [(view["id"], view["exit_code"]) for view in listed] == [(f"{ended}_2", 0), (f"{ended}_3", 1)]
    assert [view["id"] for view in client.page(job=ended)["jobs"]] == [f"{ended}_{i}" for i in (1, 2, 3, 4)]
    assert client.page(job=ended, limit=1)["more"] == 3
    done = server.muster("ps", "--members", f"{ended}_[2-3]", "-o", "name")
    assert done.stdout.split() == [f"{ended}_2", f"{ended}_3"]


def test_show_tells_of_all_and_not_of_the_first(server: Server, ended: str) -> None:
    said = server.muster("show", f"{ended}_[1-4]").stdout
    assert f"job        {ended}_[1-4] sh\n" in said
    assert "members    4 ended\n" in said
    assert "1 of 4 failed" in said
    views = json.loads(server.muster("show", f"{ended}_[1,3]", ended, "-o", "json").stdout)
    assert [view["id"] for view in views] == [f"{ended}_[1,3]", ended]


# --- Logs -----------------------------------------------------------------------------------------


def test_the_logs_of_several_come_under_headings(server: Server, client: Client, ended: str) -> None:
    wanted = f"==> {ended}_1 <==\nof 1\n\n==> {ended}_4 <==\nof 4\n"
    assert server.muster("logs", f"{ended}_[1,4]").stdout == wanted
    assert b"".join(client.logs(ended)).count(b"==> ") == 4


def test_the_logs_of_several_are_followed_until_all_have_ended(server: Server, client: Client) -> None:
    go = server.work / "go"
    wait = f"until test -f {go}; do sleep 0.02; done"
    script = f"echo begin; test $MUSTER_ARRAY_INDEX = 1 || {{ {wait}; }}; echo end"
    array = server.sh(script, array="1-3%2", cpus=0.25)["id"]
    text = b""
    for chunk in client.logs(f"{array}_[1-2]", follow=True):
        text += chunk
        if text.count(b"begin") == 2 and b"end" in text:
            go.touch()
    by_job: dict[str, list[str]] = {}
    for part in text.decode().split("==> ")[1:]:
        job, _, lines = part.partition(" <==\n")
        by_job.setdefault(job, []).extend(lines.split())
    assert by_job == {f"{array}_1": ["begin", "end"], f"{array}_2": ["begin", "end"]}
    client.wait(array, 20.0)


# --- Acting ---------------------------------------------------------------------------------------


def test_what_is_done_to_some_is_done_to_just_those(server: Server, client: Client) -> None:
    array = held(server)

    def states() -> list[str]:
        return [client.job(f"{array}_{i}")["state"] for i in (1, 2, 3, 4, 5)]

    assert client.stop(f"{array}_[1,3]")["counts"] == {"ENDED": 2}
    assert states() == ["ENDED", "HELD", "ENDED", "HELD", "HELD"]
    done = server.muster("release", f"{array}_[2-4]")
    assert (done.returncode, done.stderr) == (0, "")
    until(lambda: states() == ["ENDED", "RUNNING", "ENDED", "RUNNING", "HELD"], "two of them to run")
    assert server.muster("suspend", f"{array}_[2,4]").returncode == 0
    assert states()[1::2] == ["SUSPENDED", "SUSPENDED"]
    client.stop(array)


def test_when_one_does_not_exist_nothing_is_done(server: Server, client: Client) -> None:
    array = held(server, "1-2")
    with pytest.raises(Refused, match=f"there is no job {array}_3"):
        client.stop(f"{array}_[1-3]")
    assert client.job(array)["counts"] == {"HELD": 2}
    client.stop(array)


def test_a_wait_for_some_ends_with_the_last_of_them(server: Server, client: Client) -> None:
    array = server.sh("sleep 0.$MUSTER_ARRAY_INDEX", array="1-3", cpus=0.25)["id"]
    view = client.wait(f"{array}_[1,3]", 10.0)
    assert (view["outcome"], view["counts"]) == ("SUCCEEDED", {"ENDED": 2})
