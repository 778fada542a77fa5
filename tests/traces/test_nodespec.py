import pytest

from muster.model.errors import BadInput, MusterError
from muster.model.node import Device
from muster.model.units import GIB
from muster.traces.nodespec import parse_nodes, read_or_parse


def test_nodes_get_cpus_and_memory_by_their_gpus():
    nodes = parse_nodes("8x8")
    assert [node.name for node in nodes] == [f"a{n}" for n in range(1, 9)]
    assert nodes[0].devices == (Device(),) * 8
    assert (nodes[0].cpus_milli, nodes[0].memory_bytes) == (128_000, 512 * GIB)


def test_groups_are_lettered_and_have_their_own_gpus():
    a100, t4, plain = parse_nodes("1x8 A100:80G, 1x2 T4, 1x0")
    assert (a100.name, t4.name, plain.name) == ("a1", "b1", "c1")
    assert a100.devices[0] == Device("A100", 80 * GIB)
    assert t4.devices == (Device("T4"),) * 2
    assert (plain.devices, plain.cpus_milli) == ((), 64_000)


def test_what_is_said_counts_before_the_defaults():
    (node,) = parse_nodes("1x4 A40:48G cpus=64 mem=100G")
    assert (node.cpus_milli, node.memory_bytes) == (64_000, 100 * GIB)
    assert parse_nodes("1x0 cpus=128")[0].memory_bytes == 512 * GIB


def test_racks_and_switches_are_numbered_on_through_the_groups():
    nodes = parse_nodes("3x1 rack=2 switch=3, 2x1 rack=2, 1x1")
    assert [node.rack for node in nodes] == ["r1", "r1", "r2", "r3", "r3", None]
    assert [node.switch for node in nodes] == ["s1", "s1", "s1", None, None, None]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "expected nodes x GPUs first, like '100x4 A40"),
        ("8x8,", "can't read '' as nodes"),
        ("eight", "can't read 'eight' as nodes"),
        ("0x8", "expected 1 to 100000 nodes"),
        ("8x65", "with up to 64 GPUs"),
        ("8x8 A40 A100", "expected one GPU model"),
        ("8x8 :48G", "expected one GPU model"),
        ("8x0 A40", "expected no GPU model where there are no GPUs"),
        ("8x8 A40:lots", "'lots' is not a size"),
        ("8x8 cores=4", "unknown setting of nodes 'cores'; known: cpus, mem, rack, switch"),
        ("8x8 cpus=-4", "cpus '-4' must be a finite number"),
        ("8x8 rack=0", "expected rack of 1 or more"),
        (",".join(["1x1"] * 27), "27 groups of nodes are too many"),
    ],
)
def test_a_wrong_spec_is_refused_in_a_sentence(spec, says):
    with pytest.raises(BadInput, match=says):
        parse_nodes(spec)


def test_a_list_of_nodes_may_stand_for_a_spec(write):
    path = write("nodes.csv", "sn,cpu_milli,memory_mib,gpu,model", "n1,64000,1024,2,T4")
    assert read_or_parse(path)[0].name == "n1"
    assert read_or_parse("2x1")[1].name == "a2"


@pytest.mark.parametrize("spec", ["absent.csv", "absent", "x" * 10_000, "a\0b"])
def test_neither_a_spec_nor_a_file_is_refused(spec):
    with pytest.raises(MusterError):
        read_or_parse(spec)
