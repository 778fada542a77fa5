"""``/metrics`` of a real server, read by a real parser: everybody's on the socket, over TCP with a token."""

import urllib.request
from collections.abc import Iterator
from email.message import Message
from urllib.error import HTTPError

import pytest

from muster.server.metrics import METRICS
from scrapes import CONTENT_TYPE, Page, read, scraped
from servers import Server, until

CONFIGURATION = """
[monitor]
period = "1s"
"""
HOSTILE = ['a"b', "{team}", "ä🙂ö", "a b,c=d", "#"]


def over_tcp(server: Server, token: str | None) -> tuple[int, Message, str]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"{server.url}/metrics", headers=headers)
        ) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server("--http", "127.0.0.1:0")
    server.home.configuration.write_text(CONFIGURATION)
    with server:
        yield server


def test_over_tcp_only_a_token_is_answered(server: Server) -> None:
    with server.client() as client:
        token = client.token("prometheus", "user")
    status, headers, text = over_tcp(server, token)
    assert (status, headers["content-type"]) == (200, CONTENT_TYPE)
    assert read(text)["muster_build_info"]
    for wrong in (None, "mst_wrong", ""):
        status, headers, text = over_tcp(server, wrong)
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        assert "muster_" not in text


def test_jobs_are_counted_where_they_are_whatever_their_team_is_called(server: Server) -> None:
    with server.client() as client:
        for team in HOSTILE:
            client.wait(server.sh("exit 3", team=team)["id"])
        server.sh("true", hold=True, array="1-30", team=HOSTILE[0])
    found = scraped(server)
    assert {team for team, _ in found["muster_jobs"]} >= {"/", *HOSTILE}
    for team in HOSTILE:
        assert found["muster_jobs_ended_total"][team, "FAILED"] == 1
    assert found["muster_jobs"][HOSTILE[0], "HELD"] == 30


def test_what_a_job_uses_is_told_once_it_was_measured(server: Server) -> None:
    job = server.sh("while :; do :; done", cpus=1, memory="64M", team="busy")
    until(lambda: scraped(server).get("muster_used_cpus", {}).get(("busy",), 0.0) > 0.2, "the job's use")
    found = scraped(server)
    assert found["muster_held_cpus"]["busy",] == found["muster_measured_cpus"]["busy",] == 1.0
    assert found["muster_held_memory_bytes"]["busy",] == 64 << 20
    assert found["muster_used_memory_bytes"]["busy",] > 0
    with server.client() as client:
        client.stop(job["id"])
        client.wait(job["id"])
    assert scraped(server)["muster_held_cpus"]["busy",] == 0


def test_the_node_is_told_as_the_meters_show_it(server: Server) -> None:
    until(lambda: "muster_node_memory_used_bytes" in scraped(server), "the first look")
    found = scraped(server)
    ((node,),) = found["muster_node_capacity_cpus"]
    assert found["muster_node_health"][node, "up"] == 1
    used, size = found["muster_node_memory_used_bytes"][node,], found["muster_node_memory_size_bytes"][node,]
    assert 0 < used < size
    assert found["muster_node_disk_size_bytes"][node,] > 0
    assert found["muster_meters_silent"] == {(): 0}


def counted(server: Server) -> Page:
    """The page, once what was found at the start is durable and the meters have been looked at."""
    of_both = {"muster_held_seconds_total", "muster_node_cpu_busy_seconds_total"}
    until(lambda: of_both <= set(scraped(server)), "the counters")
    return scraped(server)


def test_counters_go_on_where_they_were_after_a_restart(server: Server) -> None:
    with server.client() as client:
        client.wait(server.sh("exit 0", team="again")["id"])
    before = counted(server)
    assert server.terminate() == 0
    server.start()
    after = counted(server)
    since_start = {"muster_cycles_total", "muster_cycle_duration_seconds_total"}
    for name in before:
        if name.endswith("_total") and name not in since_start:
            fallen = {who for who, value in before[name].items() if after[name].get(who, 0.0) < value}
            assert fallen == set(), name
    assert after["muster_jobs_ended_total"]["again", "SUCCEEDED"] == 1
    assert after["muster_held_seconds_total"]["again",] > 0


def test_every_metric_of_a_machine_without_gpus_is_on_the_page(server: Server) -> None:
    silent = {"muster_meter_silent_seconds"}  # all of them answer
    estimates = {"muster_estimate_error_seconds", "muster_estimate_within_ratio"}  # nobody has asked
    gpus = {metric.name for metric in METRICS if metric.name.startswith("muster_gpu_")}
    server.sh("true")
    until(
        lambda: {metric.name for metric in METRICS} - gpus - set(scraped(server)) == silent | estimates, "all"
    )
