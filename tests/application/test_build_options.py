"""Options as typed on a command line, without any file."""

import datetime

import pytest
from wants import NOW, built, job, members, refusal, shape

from muster.application.request import Request
from muster.model.errors import BadInput
from muster.model.job import After, Dependency, Priority, Together
from muster.model.run import Notice
from muster.model.units import GIB, MIB


def test_a_bare_command_asks_for_one_cpu_and_nothing_else() -> None:
    made = job()
    asked = made.gang.parts[0].shape
    assert (asked.cpus_milli, asked.memory_bytes, asked.gpus) == (1000, 0, 0)
    assert (made.time_limit_seconds, made.priority, made.held) == (None, Priority.NORMAL, False)
    assert (made.id, made.owner, made.team, made.name) == ("7", "ana", "vision", "train.py")
    assert made.run is not None
    assert (made.run.argv, made.run.cwd, made.run.environment) == (("python", "train.py"), "/home/ana", "e1")
    assert made.charter.owner == "ana"


def test_units_are_read_by_the_server() -> None:
    options = {"gpus": "4", "memory": "64G", "cpus": 1.5, "time": "8h", "disk": "200G", "gpu_memory": "40G"}
    made = job(options=options)
    asked = made.gang.parts[0].shape
    assert (asked.gpus, asked.gpu_milli, asked.gpu_memory_bytes) == (4, 1000, 40 * GIB)
    assert (asked.memory_bytes, asked.cpus_milli, asked.disk_bytes) == (64 * GIB, 1500, 200 * GIB)
    assert made.time_limit_seconds == 8 * 3600


def test_a_share_of_a_gpu_is_a_fraction_or_an_amount_of_its_memory() -> None:
    assert shape(options={"gpus": "0.5"}).gpu_milli == 500
    by_memory = shape(options={"gpu_memory": "10G"})
    assert (by_memory.gpus, by_memory.gpu_milli, by_memory.gpu_memory_bytes) == (1, 0, 10 * GIB)


def test_a_model_alone_asks_for_one_gpu_of_it() -> None:
    asked = shape(options={"gpu_model": ["A40", "A100"]})
    assert (asked.gpus, asked.gpu_models) == (1, ("A40", "A100"))
    assert shape(options={"gpu_model": "A40,A100"}).gpu_models == ("A40", "A100")


def test_parts_can_be_many_and_near_each_other() -> None:
    gang = job(options={"nodes": 4, "together": "rack", "gpus": 8}).gang
    assert (gang.size, gang.together) == (4, Together.RACK)


def test_dependencies_retries_holds_and_priority_are_kept() -> None:
    options = {"after_ok": ["1", "2"], "after_any": "3", "retry": "3", "hold": True, "priority": "low"}
    made = job(options=options)
    assert made.after == (
        Dependency("1", After.OK),
        Dependency("2", After.OK),
        Dependency("3", After.ANY),
    )
    assert (made.retries, made.held, made.priority) == (3, True, Priority.LOW)


def test_how_a_job_is_told_to_end_can_be_said() -> None:
    options = {"warn": "USR1@2m", "grace": "90s", "pids": 100, "cpu_cap": True, "log_limit": "1M"}
    run = job(options=options).run
    assert run is not None
    assert (run.notice, run.grace_seconds) == (Notice(10, 120.0), 90.0)
    assert (run.pids, run.cpu_cap, run.log_bytes) == (100, True, MIB)


def test_a_charter_is_kept_as_written() -> None:
    options = {
        "for": "Does 8B beat 3B?",
        "success": ["val_acc >= 0.92"],
        "failure": "loss is nan",
        "budget": "200GPUh",
        "until": "2026-12-01",
        "owner": "bo",
    }
    charter = job(options=options).charter
    assert (charter.purpose, charter.owner) == ("Does 8B beat 3B?", "bo")
    assert (charter.success, charter.failure) == (("val_acc >= 0.92",), ("loss is nan",))
    assert charter.budget == "200 GPUh"
    assert charter.until == datetime.datetime(2026, 12, 2).astimezone().timestamp()


@pytest.mark.parametrize(
    ("text", "later_seconds"), [("now+2h", 7200), ("now+60", 60), ("now+1hour", 3600), ("+5m", 300)]
)
def test_a_time_to_begin_may_be_a_delay(text: str, later_seconds: float) -> None:
    assert job(options={"begin": text}).begin_at == NOW + later_seconds


def test_a_time_of_day_to_begin_is_the_next_one() -> None:
    begin = job(options={"begin": "16:00"}).begin_at
    assert begin is not None
    assert 0 < begin - NOW <= 86400
    assert datetime.datetime.fromtimestamp(begin).astimezone().hour == 16


def test_an_array_is_a_template_and_its_indices() -> None:
    made = built(options={"array": "1-9:2%3"})
    assert (made.indices, made.most_at_once, made.sweep) == ((1, 3, 5, 7, 9), 3, ())
    assert [member.id for member in members(made)] == ["7_1", "7_3", "7_5", "7_7", "7_9"]


def test_a_sweep_tries_every_combination() -> None:
    made = built(options={"params": ["lr=1e-3,1e-4", "seed=1,2,3"], "array": "%2"})
    tried = members(made)
    assert (len(tried), made.most_at_once) == (6, 2)
    assert tried[-1].params == (("lr", "1e-4"), ("seed", "3"))


def test_a_single_job_has_no_indices() -> None:
    assert built().indices == ()


def test_an_output_file_is_relative_to_the_folder_and_knows_patterns() -> None:
    run = job(options={"output": "logs/%x-%j.out", "name": "fit"}).run
    assert run is not None
    assert run.output == "/home/ana/logs/fit-7.out"
    member = job(options={"output": "%A_%a.out", "array": "1-2"}).run
    assert member is not None
    assert member.output == "/home/ana/7_%a.out"


def test_null_says_nothing() -> None:
    assert job(options={"time": None, "gpus": None}).time_limit_seconds is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"memory": "lots"}, "memory: 'lots' is not a size"),
        ({"memory": "64"}, "write the unit"),
        ({"gpus": "-1"}, "finite number, zero or more"),
        ({"gpus": "nan"}, "finite number"),
        ({"gpus": "1.5"}, "asked whole"),
        ({"gpus": "1e9"}, "more than anybody has"),
        ({"gpus": True}, "expected a text or a number"),
        ({"cpus": "0"}, "ask for one or more"),
        ({"cpus": "1e30"}, "absurdly large"),
        ({"time": "30"}, "time: '30' is not a time span"),
        ({"time": "0s"}, "no time to run"),
        ({"nodes": "2.5"}, "not a whole number"),
        ({"nodes": 0}, "between 1 and"),
        ({"retry": "10000"}, "between 0 and 1,000"),
        ({"array": "0-999999999999"}, "go"),
        ({"array": "1-100001"}, "at most 100,000"),
        ({"array": "9-1"}, "no members"),
        ({"array": "1-10%0"}, "how many may run at once"),
        ({"array": "%3"}, "no members"),
        ({"array": "1-3", "params": ["a=1"]}, "can't be had at once"),
        ({"params": ["lr"]}, "NAME=VALUES"),
        ({"params": ["lr=1,2", "lr=3"]}, "twice"),
        ({"params": [f"p{i}=" + ",".join("0123456789") for i in range(6)]}, "at most 100,000"),
        ({"name": "../../etc"}, "looks like a path"),
        ({"name": "a\x1b[31mb"}, "can't be printed"),
        ({"name": "x" * 200}, "too long"),
        ({"team": ""}, "empty"),
        ({"labels": ["a/b"]}, "looks like a path"),
        ({"after_ok": "../7"}, "not a job's id"),
        ({"priority": "urgent"}, "known: low, normal, high"),
        ({"together": "moon"}, "known: anywhere"),
        ({"success": "step < 0"}, "'step < 0' can never be met"),
        ({"failure": "lr stalls for 2h"}, "write 'lr stops rising' or 'lr stops falling' instead"),
        ({"failure": "acc < 0.5 after 2h", "time": "1h"}, "runs for at most 1h"),
        ({"budget": "many"}, "write it like '200 GPUh'"),
        ({"until": "soon"}, "write it like 2026-12-01"),
        ({"until": "2020-01-01"}, "has passed"),
        ({"begin": "whenever"}, "write it like now+2h"),
        ({"for": "x" * 201}, "at most 200"),
        ({"for": "two\nlines"}, "one line"),
        ({"warn": "NOPE@2m"}, "write it like USR1@2m"),
        ({"output": "%q.out"}, "%q is not understood"),
        ({"gpsu": 1}, "did you mean 'gpus'?"),
        ({"hold": "perhaps"}, "expected true or false"),
    ],
)
def test_a_wrong_option_is_refused_in_a_sentence(options: dict[str, object], words: str) -> None:
    assert words in refusal(options=options)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"command": ()}, "the command is empty"),
        ({"command": ("a\0b",)}, "can't be an argument"),
        ({"command": ("",)}, "first word is empty"),
        ({"command": ("x" * 200_000,)}, "too long"),
        ({"cwd": "relative"}, "absolute"),
        ({"umask": 4096}, "umask"),
        ({"environment": {"A=B": "c"}}, "can't be a variable"),
        ({"environment": {"A": "c" * 1_100_000}}, "larger than a megabyte"),
        ({"script": "echo", "command": ("true",)}, "give one of them"),
        ({"script": " \n"}, "is empty"),
        ({"script": "x" * 1_100_000}, "larger than a megabyte"),
        ({"yaml": "run: x", "application": {"run": "x"}}, "given twice"),
    ],
)
def test_a_request_that_could_start_nothing_is_refused(given: dict[str, object], words: str) -> None:
    assert words in refusal(**given)


def test_a_request_without_anything_to_run_says_what_to_give() -> None:
    assert "nothing to run; give a command" in refusal(command=None)


def test_a_request_is_small_by_default() -> None:
    assert Request().umask == 0o022


def test_what_shows_progress_is_part_of_the_charter() -> None:
    assert job(options={"progress": "report,log"}).charter.progress == ("report", "log")
    assert "sign of progress" in refusal(options={"progress": "hope"})


def test_a_condition_that_is_none_is_pointed_at() -> None:
    with pytest.raises(BadInput) as caught:
        built(options={"success": "val_acc >>= 1"})
    sentence, written, caret = str(caught.value).split("\n")
    assert sentence.startswith("success: 'val_acc >>= 1' is not a condition: a number was expected here")
    assert (written, caret) == ("  val_acc >>= 1", "           ^")


def test_conditions_are_kept_in_one_spelling_each_once() -> None:
    charter = job(options={"success": ["val_acc>=92%", "val_acc  >= 0.92"], "failure": "loss is NaN"}).charter
    assert (charter.success, charter.failure) == (("val_acc >= 0.92",), ("loss is nan",))


def test_doubtful_exits_are_pointed_out_and_accepted() -> None:
    made = built(options={"success": "step >= 0"})
    assert made.warnings == ("'step >= 0' is met by any first report; the work would end as won at once",)
    assert made.job.charter.success == ("step >= 0",)
