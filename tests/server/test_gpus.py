"""GPUs under a real server, with a library of our own in place of NVIDIA's."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from servers import Server, View, until

sys.path.append(str(Path(__file__).parents[1] / "monitor"))
import meter_lab

GIB = 1 << 30
_HARDWARE = """
gpu 0 uuid GPU-a
gpu 0 name NVIDIA A40
gpu 0 bus 00000000:01:00.0
gpu 0 minor 0
gpu 0 total {total}
gpu 1 uuid GPU-b
gpu 1 name NVIDIA A40
gpu 1 bus 00000000:02:00.0
gpu 1 minor 1
gpu 1 total {total}
"""


class Driver:
    """What the library tells, written to the file that it reads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.tell()

    def tell(self, *lines: str) -> None:
        beside = self._path.with_suffix(".new")
        beside.write_text("\n".join([_HARDWARE.format(total=48 * GIB), *lines]))
        beside.rename(self._path)


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, Driver]]:
    if meter_lab.compiler() is None:
        pytest.skip("there is no C compiler to build the library that stands in for NVIDIA's")
    library = meter_lab.build(tmp_path)
    driver = Driver(tmp_path / "told")
    monkeypatch.setenv("FAKE_NVML", str(tmp_path / "told"))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    server = Server()
    (server.home.path / "muster.toml").write_text('[monitor]\nperiod = "1s"\n')
    with server:
        yield server, driver


def running(server: Server, **options: object) -> View:
    with server.client() as client:
        job = client.submit(["sleep", "100"], **options)["id"]
        until(lambda: client.job(job)["state"] == "RUNNING", "its start")
        return client.job(job)


def pid_of(server: Server) -> int:
    return min(server.processes())


def test_gpus_are_found_granted_and_measured(gpus: tuple[Server, Driver]) -> None:
    server, driver = gpus
    view = running(server, gpus=1)
    [device] = view["devices"]
    driver.tell(f"gpu {device} busy 60", f"gpu {device} compute {pid_of(server)} {5 * GIB}")
    with server.client() as client:
        assert [d["model"] for d in client.nodes()[0]["devices"]] == ["A40", "A40"]

        def told() -> str:
            return dict(client.job(view["id"])["efficiency"]).get("GPU", "")

        until(lambda: "busy" in told() and "nvml" in told(), "how busy it is, and by what metric")


def test_the_map_shows_what_is_truly_used_and_by_which_process(gpus: tuple[Server, Driver]) -> None:
    server, driver = gpus
    view = running(server, gpus=1)
    driver.tell("gpu 0 busy 60", f"gpu 0 compute {pid_of(server)} {5 * GIB}")
    with server.client() as client:

        def seen() -> View:
            return dict(client.map()["nodes"][0]["gpus"][0])

        until(lambda: (seen()["share"] or 0) > 0.1, "its use")
        assert (seen()["state"], seen()["jobs"]) == ("working", [view["id"]])
        [place] = client.where(view["id"])["places"]
        assert [one["gpu_memory_bytes"] for one in place["processes"]] == [5 * GIB]
        assert place["gpus"][0]["share"] > 0.1


def test_a_gpu_that_is_held_and_never_used_is_held_idle(gpus: tuple[Server, Driver]) -> None:
    server, driver = gpus
    driver.tell("gpu 0 busy 0")
    running(server, gpus=1)
    with server.client() as client:
        until(lambda: client.map()["counts"]["held idle"] == 1, "that it is found idle")
        assert client.map()["sentence"] == "2 GPUs: 1 is held idle, 1 is free."


def test_who_is_on_a_gpu_without_muster_is_told(gpus: tuple[Server, Driver]) -> None:
    server, driver = gpus
    stranger = subprocess.Popen(["sleep", "100"])
    try:
        driver.tell("gpu 0 busy 90", "gpu 0 celsius 61", f"gpu 0 compute {stranger.pid} {3 * GIB}")
        with server.client() as client:
            until(lambda: client.nodes()[0]["devices"][0]["foreign"], "the stranger")
            device = client.nodes()[0]["devices"][0]
        [foreign] = device["foreign"]
        assert (foreign["pid"], foreign["memory_bytes"]) == (stranger.pid, 3 * GIB)
        assert "sleep" in foreign["command"]
        assert (device["busy"], device["temperature_celsius"]) == (0.9, 61.0)
        assert f"process {stranger.pid}" in server.muster("node").stdout
    finally:
        stranger.kill()
        stranger.wait()


def test_a_gpu_that_falls_off_the_bus_is_quarantined_until_someone_brings_it_back(
    gpus: tuple[Server, Driver],
) -> None:
    server, driver = gpus
    driver.tell("gpu 0 busy 0", "gpu 1 busy 0")
    with server.client() as client:
        first = running(server, gpus=2)["id"]
        until(lambda: "nvml" in str(client.job(first)["efficiency"]), "a look at both")
        client.wait(client.stop(first, grace_seconds=0)["id"])
        driver.tell("gpu 0 busy 0", "gpu 1 lost 1")
        until(lambda: not client.nodes()[0]["devices"][1]["healthy"], "the quarantine")
        node = client.nodes()[0]
        assert "no longer answers" in node["devices"][1]["reason"]
        jobs = [running(server, gpus=1)["devices"], client.submit(["true"], gpus=1)["state"]]
        assert jobs == [[0], "QUEUED"]
        server.kill()
        server.start()
        assert not client.nodes()[0]["devices"][1]["healthy"], "a restart forgets nothing"
        driver.tell("gpu 0 busy 0", "gpu 1 busy 0")
        said = server.muster("node", "resume", node["name"], "--gpu", "1")
        assert said.returncode == 0, said.stderr
        assert client.nodes()[0]["devices"][1]["healthy"]


def test_who_takes_more_gpu_memory_than_its_share_is_warned_and_then_stopped(
    gpus: tuple[Server, Driver],
) -> None:
    server, driver = gpus
    with (server.home.path / "muster.toml").open("a") as file:
        file.write('[findings]\non_gpu_memory = { act = "stop", warnings = 1, grace = "1s" }\n')
    server.kill()
    server.start()
    view = running(server, gpus=0.25)
    [device] = view["devices"]
    driver.tell(f"gpu {device} busy 60", f"gpu {device} compute {pid_of(server)} {30 * GIB}")
    with server.client() as client:
        until(lambda: client.job(view["id"])["findings"], "the warning")
        assert "GPU memory" in client.job(view["id"])["findings"][0]
        view = client.wait(view["id"])
        assert (view["outcome"], "GPU" in view["cause"]) == ("STOPPED", True)
