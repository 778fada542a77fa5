import pytest

from muster.model.errors import BadInput, BadTrace
from muster.model.job import Shape
from muster.model.units import GIB, MIB
from muster.traces import openb

NODES = (
    "sn,cpu_milli,memory_mib,gpu,model",
    "openb-node-0000,64000,262144,2,P100",
    "openb-node-0227,96000,786432,8,V100M32",
    "openb-node-1300,94000,262144,0,",
)
HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)
SHARE = "openb-pod-0001,6000,12288,1,460,,LS,Running,427061,12902960,427071"
WHOLE = "openb-pod-0005,88000,327680,8,1000,V100M16|V100M32,BE,Succeeded,500000,500600,500100"
CPU_ONLY = "openb-pod-0017,20000,65536,0,0,T4,LS,Pending,300000,300050,"


def test_pods_come_in_order_of_creation_with_their_shapes(write):
    trace = openb.read(write("openb_pod_list_default.csv", HEADER, SHARE, WHOLE, CPU_ONLY))
    cpu_only, share, whole = (entry.job for entry in trace.jobs)
    assert cpu_only.gang.parts[0].shape == Shape(20_000, 64 * GIB)
    assert share.gang.parts[0].shape == Shape(6000, 12_288 * MIB, gpus=1, gpu_milli=460)
    assert share.gang.parts[0].shape.shares_gpu
    assert whole.gang.parts[0].shape.gpus == 8
    assert whole.gang.parts[0].shape.gpu_models == ("V100M16", "V100M32")
    assert (whole.owner, whole.team, whole.submitted_at) == ("BE", "BE", 500_000.0)


def test_a_pod_runs_from_when_it_was_scheduled_or_else_created_to_its_deletion(write):
    pods = openb.read_pods(write("pods.csv", HEADER, WHOLE, CPU_ONLY))
    assert [pod.run_seconds for pod in pods] == [50.0, 500.0]


def test_a_list_without_times_arrives_a_second_apart_and_runs_an_hour(write):
    lines = (HEADER.rsplit(",", 6)[0], "p1,1000,1024,0,0", "p2,1000,1024,2,1000")
    pods = openb.read_pods(write("openb_pod_list_multigpu20.csv", *lines))
    assert [(pod.job.submitted_at, pod.run_seconds) for pod in pods] == [(0, 3600), (1, 3600)]
    assert pods[0].job.owner == ""


def test_nodes_come_from_the_list_beside_the_pods(write):
    write("openb_node_list_all_node.csv", *NODES)
    first, second, third = openb.read(write("openb_pod_list_x.csv", HEADER, SHARE)).nodes
    assert (first.name, first.cpus_milli, first.memory_bytes) == (
        "openb-node-0000",
        64_000,
        256 * GIB,
    )
    assert [device.model for device in first.devices] == ["P100", "P100"]
    assert len(second.devices) == 8
    assert third.devices == ()


def test_without_a_list_of_nodes_a_trace_has_none(write):
    assert openb.read(write("openb_pod_list_x.csv", HEADER, SHARE)).nodes == ()


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (SHARE.replace("460", "1460"), "expected gpu_milli from 0 to 1000, found 1460"),
        (SHARE.replace(",460", ",0"), "expected gpu_milli from 1 to 1000 for 1 GPUs"),
        (WHOLE.replace(",1000,", ",500,"), "expected gpu_milli from 1000 to 1000 for 8 GPUs"),
        (SHARE.replace("6000", "-6000"), "cpu_milli '-6000' must be a finite number"),
        (SHARE.replace("6000", "nan"), "cpu_milli 'nan'"),
        (SHARE.replace("6000", "0.5"), "expected cpu_milli as a whole number, found '0.5'"),
        (SHARE.replace("12902960", "400000"), "seconds from start to deletion_time"),
        (SHARE.replace("12902960", ""), "deletion_time '' is not a number"),
        (SHARE.replace("openb-pod-0001", ""), "expected a pod name, found a blank"),
        (WHOLE, "expected every job once, found 'openb-pod-0005' of line 2 again"),
        (SHARE + ",7", "expected 11 fields, found 12"),
    ],
)
def test_a_broken_pod_is_refused_by_line(write, broken, says):
    with pytest.raises(BadTrace) as refusal:
        openb.read_pods(write("pods.csv", HEADER, WHOLE, "", broken))
    assert refusal.value.line == 4
    assert says in str(refusal.value)


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (("sn,gpu", "a,1"), "missing: cpu_milli, memory_mib, model"),
        ((NODES[0], NODES[1], NODES[1]), "expected every node once"),
        ((NODES[0], "a,64000,1024,2000000,T4"), "expected gpu from 0 to 1024"),
        ((NODES[0],), "lists no node"),
    ],
)
def test_a_broken_list_of_nodes_is_refused(write, lines, says):
    with pytest.raises(BadInput, match=says):
        openb.read_nodes(write("nodes.csv", *lines))
