import pytest

from muster.model.errors import BadTrace
from muster.traces import muri

HEADER = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,"
    "iteration_time,resource_time_0,resource_time_1,resource_time_2,priority"
)
FOUR = "0,4,0,1046811,shufflenet_v2_x1_0,128,927475000,11174000,886,703,62,17,0"
THIRTY_TWO = "12,32,8552000,164765,vgg16,16,52066000,36000,336,87,67,131,1"
ENDLESS = FOUR.replace("1046811", "999999999999").replace("886", "99999")
TWELVE = "13,12,8552000,10,bert,4,1,1,190,0.5,163,18,0"


def test_a_job_runs_its_iterations_with_the_overhead_of_the_study(write):
    first, second = muri.read(write("trace3.csv", HEADER, FOUR, THIRTY_TWO)).jobs
    assert first.run_seconds == pytest.approx(1_046_811 * 0.886 * 1.015)
    assert first.job.name == "shufflenet_v2_x1_0"
    assert second.job.submitted_at == 8552.0


def test_a_job_larger_than_a_node_is_a_gang_of_full_nodes_and_the_rest(write):
    path = write("trace3.csv", HEADER, FOUR, THIRTY_TWO, TWELVE)
    assert [str(entry.job.gang) for entry in muri.read(path).jobs] == [
        "4 GPUs",
        "4 × 8 GPUs",
        "8 GPUs + 4 GPUs",
    ]
    assert str(muri.read(path, gpus_per_node=16).jobs[1].job.gang) == "2 × 16 GPUs"


def test_the_cluster_is_eight_nodes_of_eight_gpus(write):
    nodes = muri.read(write("trace3.csv", HEADER, FOUR)).nodes
    assert [node.name for node in nodes] == [f"node{n}" for n in range(1, 9)]
    assert {len(node.devices) for node in nodes} == {8}


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (FOUR.replace(",4,0,", ",4,-1,"), "submit_time '-1'"),
        (FOUR.replace(",4,", ",2000000,"), "expected num_gpu from 0 to 1e\\+06"),
        (ENDLESS, "expected run seconds from 0 to"),
        (FOUR.replace("1046811", "inf"), "iterations 'inf'"),
        (THIRTY_TWO, "expected every job once"),
    ],
)
def test_a_broken_job_is_refused_by_line(write, broken, says):
    with pytest.raises(BadTrace, match=says) as refusal:
        muri.read(write("trace.csv", HEADER, THIRTY_TWO, broken))
    assert refusal.value.line == 3
