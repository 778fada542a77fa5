"""GPUs on ``/metrics``: from the driver, by way of a real server, to the page; also of one that is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from meter_lab import Driver

from muster.model.units import GIB
from scrapes import Page, scraped
from servers import Server, until

GPUS = f"""
    gpu 0 uuid GPU-a
    gpu 0 name NVIDIA A40
    gpu 0 total {48 * GIB}
    gpu 0 used {3 * GIB}
    gpu 0 busy 37
    gpu 0 milliwatts 61500
    gpu 0 celsius 44
    gpu 0 errors 2
    gpu 1 uuid GPU-b
    gpu 1 name NVIDIA A40
"""
FIRST = ("vm", "0", "GPU-a", "NVIDIA A40")


@pytest.fixture
def server(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("LD_LIBRARY_PATH", "FAKE_NVML"):
        monkeypatch.setenv(name, driver.environment[name])
    driver.has(GPUS)
    server = Server()
    Path(server.home.configuration).write_text('[server]\nname = "vm"\n[monitor]\nperiod = "1s"\n')
    with server:
        yield server


def looked_at(server: Server) -> Page:
    until(lambda: "muster_gpu_lost" in scraped(server), "the first look")
    return scraped(server)


def test_gpus_are_told_from_the_driver_to_the_page_and_an_unknown_is_not(
    server: Server, driver: Driver
) -> None:
    server.sh("sleep 60", gpus=0.5)
    until(lambda: scraped(server)["muster_jobs"]["/", "RUNNING"] == 1, "the job to run")
    found = looked_at(server)
    assert found["muster_node_capacity_gpus"] == {("vm",): 2}
    assert found["muster_held_gpus"] == {("/",): 0.5}
    assert sum(found["muster_gpu_held_ratio"].values()) == 0.5
    assert found["muster_gpu_busy_ratio"] == {(*FIRST, "nvml-utilization"): 0.37}
    assert found["muster_gpu_memory_used_bytes"][FIRST] == 3 * GIB
    assert found["muster_gpu_memory_size_bytes"][FIRST] == 48 * GIB
    assert found["muster_gpu_power_watts"] == {FIRST: 61.5}
    assert found["muster_gpu_temperature_celsius"] == {FIRST: 44}
    assert found["muster_gpu_uncorrected_errors_total"] == {FIRST: 2}
    driver.has(f"gpu 0 lost 1\n{GPUS}")
    until(lambda: scraped(server)["muster_gpu_lost"][FIRST] == 1, "the loss to be noticed")
    assert "muster_gpu_busy_ratio" not in scraped(server)
