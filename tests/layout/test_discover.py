"""What is found on a machine: its files, and NVIDIA's library, each as a source."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from muster.engines.local.nvml import Nvml
from muster.layout.check import check
from muster.layout.discover import discover, discover_here
from muster.layout.file import parse_layout
from muster.layout.merge import merge
from muster.layout.parts import CORES, GPU_MODEL, GPUS, RAM, Fact
from muster.layout.write import as_file, sources, to_yaml
from muster.model.units import KIB

sys.path.append(str(Path(__file__).parents[1] / "monitor"))
import meter_lab


def machine(
    root: Path, *, cores: int = 4, threads: int = 2, pci: dict[str, tuple[str, str, str]] | None = None
) -> Path:
    """Files as a kernel has them: so many cores in each of two packages; devices by address."""
    texts = {"proc/meminfo": "MemTotal:  1024 kB\n", "sys/devices/system/node/node0/x": ""}
    texts["sys/devices/system/cpu/online"] = f"0-{2 * cores * threads - 1}\n"
    for cpu in range(2 * cores * threads):
        folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
        texts[f"{folder}/physical_package_id"] = f"{cpu % 2}\n"
        texts[f"{folder}/core_id"] = f"{cpu // 2 % cores}\n"
    for address, (vendor, kind, numa) in (pci or {}).items():
        folder = f"sys/bus/pci/devices/{address}"
        texts |= {f"{folder}/vendor": vendor, f"{folder}/class": kind, f"{folder}/numa_node": numa}
        texts[f"{folder}/device"] = "0x2235\n"
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


PCI = {
    "0000:c1:00.0": ("0x10de\n", "0x030200\n", "0\n"),
    "0000:01:00.0": ("0x10de\n", "0x030200\n", "3\n"),
    "0000:02:00.0": ("0x1a03\n", "0x030000\n", "-1\n"),  # the picture of the management controller
    "0000:03:00.0": ("0x1002\n", "0x030000\n", "-1\n"),  # a part of the processor
    "0000:04:00.0": ("0x1002\n", "0x120000\n", "-1\n"),
}


def test_cores_are_counted_once_however_many_threads_they_have(tmp_path: Path) -> None:
    found = discover(machine(tmp_path), name="a")
    assert {fact.about: fact.value for fact in found.facts} == {
        CORES: 8,
        "threads": 16,
        "sockets": 2,
        "NUMA nodes": 1,
        RAM: 1024 * KIB,
    }
    assert Fact(CORES, 8, "/sys/devices/system/cpu") in found.facts


def test_without_a_driver_the_bus_tells_which_gpus_there_are_and_where(tmp_path: Path) -> None:
    found = discover(machine(tmp_path, pci=PCI), name="a")
    assert found.gpus is not None
    assert [(gpu.bus, gpu.numa) for gpu in found.gpus] == [
        ("0000:01:00.0", 3),
        ("0000:04:00.0", None),
        ("0000:c1:00.0", 0),
    ]
    assert Fact(GPUS, 3, "/sys/bus/pci/devices") in found.facts


def test_what_can_t_be_read_is_not_known(tmp_path: Path) -> None:
    found = discover(tmp_path, name="a")
    assert (found.facts, found.gpus) == ((), None)
    assert list(sources(found)) == ["gpus: not known (nobody here can tell)"]


class Library:
    """As much of NVIDIA's as is asked here; one device has fallen off the bus."""

    NVML_ERROR_GPU_IS_LOST, NVML_ERROR_NOT_SUPPORTED = 15, 3

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        if index:
            error = RuntimeError("lost")
            error.value = self.NVML_ERROR_GPU_IS_LOST  # type: ignore[attr-defined]
            raise error
        return index

    def nvmlDeviceGetName(self, _: int) -> str:  # noqa: N802
        return "NVIDIA A40"

    def nvmlDeviceGetPciInfo(self, _: int) -> object:  # noqa: N802
        return type("Pci", (), {"busId": b"00000000:01:00.0"})


def test_nvidia_s_library_counts_as_jobs_do_and_the_bus_tells_the_memory_node(tmp_path: Path) -> None:
    found = discover(machine(tmp_path, pci=PCI), Nvml(Library()), "a")
    assert found.gpus is not None
    first, lost = found.gpus
    assert (first.model, first.numa, first.bus, first.memory_bytes) == ("A40", 3, "0000:01:00.0", None)
    assert (lost.number, lost.model, lost.seen) == (1, None, True)
    assert GPU_MODEL not in [fact.about for fact in found.facts]


def test_a_gpu_on_the_bus_that_the_driver_does_not_count_is_a_contradiction(tmp_path: Path) -> None:
    layout = merge(None, (discover(machine(tmp_path, pci=PCI), Nvml(Library()), "a"),))
    assert [str(one) for one in layout.contradictions] == [
        "a: gpus: NVML says 2, /sys/bus/pci/devices sees 3"
    ]


def test_what_is_found_is_a_layout_that_check_accepts(tmp_path: Path) -> None:
    for found in (discover(machine(tmp_path, pci=PCI), name="a"), discover_here()):
        text = to_yaml(as_file(found, "here"), sources(found))
        file = parse_layout(text)
        assert not [flaw for flaw in check(file) if flaw.wrong]
        layout = merge(file, (found,))
        assert layout.contradictions == ()
        assert layout.gpu_count == len(found.gpus or ())


@pytest.mark.skipif(
    meter_lab.compiler() is None, reason="no C compiler to build a library in place of NVIDIA's"
)
def test_a_gpu_that_the_driver_lost_is_shown_on_the_map(tmp_path: Path) -> None:
    """The whole command, with a library of our own in place of NVIDIA's."""
    (tmp_path / "told").write_text("gpu 0 uuid GPU-a\ngpu 0 name NVIDIA A40\ngpu 0 bus 00000000:01:00.0\n")
    environment = {
        **os.environ,
        "FAKE_NVML": str(tmp_path / "told"),
        "LD_LIBRARY_PATH": str(meter_lab.build(tmp_path)),
        "MUSTER_HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }

    def muster(*words: str) -> str:
        command = [sys.executable, "-m", "muster", "layout", *words]
        return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout

    text = muster("discover")
    assert "gpus: 1 (NVML)" in text
    (tmp_path / "layout.yaml").write_text(text.replace("count: 1", "count: 2"))
    shown = muster("show")
    assert "2 GPUs in 1 node; 1 node without a place; 1 GPU said and not seen; 1 contradiction." in shown
    assert "▪✕" in shown
    assert "says 2, NVML sees 1" in shown
