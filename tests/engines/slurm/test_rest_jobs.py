"""Options of sbatch in the words of slurmrestd: all that Muster says, and nothing that means another."""

from typing import Any

import pytest
from slurm_rested import FIELDS

from muster.engines.slurm.rest_api import Api
from muster.engines.slurm.rest_job import Unsayable, job_of

OLD = Api(38, frozenset())
NEW = Api(45, frozenset(), frozenset(FIELDS.split()))
PATH = {"PATH": "/bin"}


def said(api: Api, *options: str) -> dict[str, Any]:
    found = job_of(options, "#!/bin/sh\n", PATH, api)["job"]
    return {key: value for key, value in found.items() if key not in ("environment", "script")}


def number(value: int) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": value}


@pytest.mark.parametrize(
    ("option", "old", "new"),
    [
        ("--job-name=a=b", {"name": "a=b"}, {"name": "a=b"}),
        ("--comment=x\ny", {"comment": "x\ny"}, {"comment": "x\ny"}),
        ("--chdir=/", {"current_working_directory": "/"}, {"current_working_directory": "/"}),
        ("--ntasks=3", {"tasks": 3}, {"tasks": 3}),
        ("--mem=2G", {"memory_per_node": 2048}, {"memory_per_node": number(2048)}),
        ("--mem-per-cpu=1500K", {"memory_per_cpu": 2}, {"memory_per_cpu": number(2)}),
        ("--time=9", {"time_limit": 9}, {"time_limit": number(9)}),
        ("--nodes=2", {"nodes": "2"}, {"minimum_nodes": 2, "maximum_nodes": 2}),
        ("--nodes=1-3", {"nodes": "1-3"}, {"minimum_nodes": 1, "maximum_nodes": 3}),
        ("--nodelist=a,b", {"nodelist": "a,b"}, {"required_nodes": ["a", "b"]}),
        ("--gres=gpu:a40:2", {"gres": "gpu:a40:2"}, {"tres_per_node": "gres/gpu:a40:2"}),
        ("--gpus-per-task=2", {"gpus_per_task": "2"}, {"tres_per_task": "gres/gpu=2"}),
        ("--gpus-per-task=a40:2", {"gpus_per_task": "a40:2"}, {"tres_per_task": "gres/gpu:a40=2"}),
        ("--tmp=10M", {"temporary_disk_per_node": "10M"}, {"temporary_disk_per_node": 10}),
        ("--no-requeue", {"no_requeue": True}, {"requeue": False}),
        ("--open-mode=append", {"open_mode": "append"}, {"open_mode": ["APPEND"]}),
        ("--export=ALL", {}, {}),
        ("--signal=10@60", {"signal": "10@60"},
         {"kill_warning_signal": "10", "kill_warning_delay": number(60)}),
        ("--signal=B:10@60", None,
         {"kill_warning_signal": "10", "kill_warning_delay": number(60),
          "kill_warning_flags": ["BATCH_JOB"]}),
        ("--switches=1", None, {"required_switches": number(1)}),
        ("--exclude=a", None, {"excluded_nodes": ["a"]}),
        ("--exclusive", None, None),
        ("--time=1-00:00:00", None, None),
        ("--mem=all", None, None),
        ("--nice=-5", None, None),
        ("-p", None, None),
        ("--export=NONE", None, None),
    ],
)  # fmt: skip
def test_each_option_has_its_word_or_is_named_as_having_none(
    option: str, old: dict[str, Any] | None, new: dict[str, Any] | None
) -> None:
    for api, wanted in ((OLD, old), (NEW, new)):
        if wanted is None:
            with pytest.raises(Unsayable) as left:
                said(api, option)
            assert left.value.option == option
        else:
            assert said(api, option) == wanted


def test_the_last_of_two_counts_as_with_sbatch() -> None:
    assert said(OLD, "--partition=a", "--partition=b") == {"partition": "b"}


def test_script_and_environment_stand_where_the_interface_wants_them() -> None:
    old = job_of(["--cpus-per-task=2"], "#!/bin/sh\n", PATH, OLD)
    assert old["script"] == "#!/bin/sh\n"
    assert old["job"]["environment"] == {"PATH": "/bin", "SLURM_CPUS_PER_TASK": "2"}
    new = job_of(["--cpus-per-task=2"], "#!/bin/sh\n", PATH, NEW)["job"]
    assert (new["script"], new["environment"]) == ("#!/bin/sh\n", ["PATH=/bin", "SLURM_CPUS_PER_TASK=2"])


def test_a_key_that_the_interface_does_not_list_is_not_sent() -> None:
    with pytest.raises(Unsayable, match="--wckey=w"):
        said(Api(45, frozenset(), frozenset({"name"})), "--job-name=a", "--wckey=w")
