"""Meters and something to read, in groups and without; libraries in place of NVIDIA's, built once."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import meter_lab
import pytest
from meter_lab import Driver, Worker

from muster.monitor.meters import Meters, PartSeen


@pytest.fixture
def meters(tmp_path: Path) -> Iterator[Meters]:
    with contextlib.closing(Meters(tmp_path, gpus=tuple)) as meters:
        yield meters


@pytest.fixture(params=[meter_lab.v1, meter_lab.v2, meter_lab.no_group], ids=["v1", "v2", "no group"])
def seen(request: pytest.FixtureRequest) -> Iterator[tuple[Worker, PartSeen]]:
    with request.param() as seen:
        yield seen


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _built(tmp_path_factory)


@pytest.fixture(scope="session")
def old_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It lacks calls that came later."""
    return _built(tmp_path_factory, "-DOLD")


def _built(folders: pytest.TempPathFactory, *options: str) -> Path:
    if meter_lab.compiler() is None:
        pytest.skip("there is no C compiler to build the library that stands in for NVIDIA's")
    return meter_lab.build(folders.mktemp("nvml"), *options)


@pytest.fixture
def driver(library: Path, tmp_path: Path) -> Iterator[Driver]:
    driver = Driver(library, tmp_path)
    yield driver
    driver.close()


@pytest.fixture
def old_driver(old_library: Path, tmp_path: Path) -> Iterator[Driver]:
    driver = Driver(old_library, tmp_path)
    yield driver
    driver.close()


@pytest.fixture
def impatient(library: Path, tmp_path: Path) -> Iterator[Driver]:
    """Its reader does not wait for a driver that stands still."""
    driver = Driver(library, tmp_path, patience_seconds=0.2)
    yield driver
    driver.close()
