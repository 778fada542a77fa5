"""``#SBATCH`` lines, as people have them in their scripts."""

import pytest
from wants import built, job, refusal, shape

from muster.application.times import UNLIMITED, slurm_seconds
from muster.model.job import After, Dependency, Together
from muster.model.run import Notice
from muster.model.units import GIB, MIB


def script(*lines: str) -> str:
    return "\n".join(["#!/bin/bash", *(f"#SBATCH {line}" for line in lines), "python train.py", ""])


def test_a_usual_script_is_read() -> None:
    made = job(
        script=script("--job-name=fit", "-c 8", "--mem=32G", "--gres=gpu:a100:2", "-t 1-12:00:00"),
        script_name="train.sh",
        args=("--lr", "3"),
    )
    asked = made.gang.parts[0].shape
    assert (made.name, made.time_limit_seconds) == ("fit", 36 * 3600)
    assert (asked.cpus_milli, asked.memory_bytes) == (8000, 32 * GIB)
    assert (asked.gpus, asked.gpu_models) == (2, ("a100",))
    assert made.run is not None
    assert made.run.argv == ("--lr", "3")
    assert made.run.script is not None
    assert made.run.script.startswith("#!/bin/bash")


def test_a_script_without_a_name_is_called_like_its_file() -> None:
    assert job(script="echo", script_name="some/train.sh").name == "train.sh"


def test_reading_stops_at_the_first_command() -> None:
    text = "#!/bin/sh\n\n# words\n#SBATCH --mem=2G\necho\n#SBATCH --mem=4G --nonsense\n"
    assert shape(script=text).memory_bytes == 2 * GIB


def test_lines_that_only_resemble_are_comments() -> None:
    assert shape(script="##SBATCH --mem=1G\n# SBATCH --mem=1G\n#SBATCHING\necho").memory_bytes == 0


def test_values_may_be_quoted_apart_or_attached_and_lines_may_have_comments() -> None:
    made = job(script=script('--job-name "my fit" -c4 --mem 2G # two gigabytes', "-n=2"))
    assert (made.name, made.gang.parts[0].shape.cpus_milli) == ("my fit", 8000)


def test_options_override_the_script() -> None:
    assert shape(script=script("--mem=2G"), options={"memory": "4G"}).memory_bytes == 4 * GIB


def test_nodes_and_tasks_become_parts_with_the_cpus_of_all_their_tasks() -> None:
    lines = ["-N 2", "--ntasks-per-node=4", "--cpus-per-task=3", "--gpus-per-task=1", "--mem-per-cpu=1G"]
    gang = job(script=script(*lines)).gang
    asked = gang.parts[0].shape
    assert (gang.size, gang.together) == (2, Together.SPREAD)
    assert (asked.cpus_milli, asked.gpus, asked.memory_bytes) == (12_000, 4, 12 * GIB)


def test_tasks_without_nodes_share_one_part() -> None:
    gang = job(script=script("--ntasks=4")).gang
    assert (gang.size, gang.parts[0].shape.cpus_milli) == (1, 4000)


@pytest.mark.parametrize(
    ("line", "gpus"),
    [
        ("--gpus=4", 4),
        ("-G a100:2", 2),
        ("--gres=gpu", 1),
        ("--gres=gpu:3", 3),
        ("--gpus-per-node=h100:8", 8),
    ],
)
def test_gpus_are_asked_in_many_ways(line: str, gpus: int) -> None:
    assert shape(script=script(line)).gpus == gpus


def test_gpus_of_the_whole_job_are_dealt_out_to_its_nodes() -> None:
    assert shape(script=script("-N2", "--gpus=8")).gpus == 4
    assert "use --gpus-per-node" in refusal(script=script("-N3", "--gpus=8"))


def test_memory_without_a_unit_is_megabytes_and_none_is_no_limit() -> None:
    assert shape(script=script("--mem=4000")).memory_bytes == 4000 * MIB
    assert shape(script=script("--mem=0")).memory_bytes == 0
    assert shape(script=script("--gres=gpu:2", "--mem-per-gpu=10G")).memory_bytes == 20 * GIB


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400),
        ("90:30", 5430),
        ("1:30:00", 5400),
        ("1-12", 129_600),
        ("1-12:30", 131_400),
        ("2-00:00:10", 172_810),
        ("UNLIMITED", UNLIMITED),
    ],
)
def test_every_form_of_time_that_slurm_has(text: str, seconds: float) -> None:
    assert slurm_seconds(text) == seconds


def test_no_limit_is_no_limit() -> None:
    assert job(script=script("--time=UNLIMITED")).time_limit_seconds is None


def test_arrays_dependencies_holds_and_signals_are_understood() -> None:
    lines = ["--array=1,3,5-9:2%2", "--dependency=afterok:1:2,afterany:3", "--hold", "--signal=B:USR1@120"]
    made = built(script=script(*lines))
    assert (made.indices, made.most_at_once) == ((1, 3, 5, 7, 9), 2)
    assert made.job.after == (Dependency("1"), Dependency("2"), Dependency("3", After.ANY))
    assert made.job.held
    assert made.job.run is not None
    assert made.job.run.notice == Notice(10, 120)


def test_account_is_the_team_and_features_are_labels() -> None:
    made = job(script=script("-A nlp", "--constraint=nvme&ib", "-D /scratch", "-o out-%j.txt"))
    assert (made.team, made.gang.parts[0].shape.labels) == ("nlp", ("nvme", "ib"))
    assert made.run is not None
    assert (made.run.cwd, made.run.output) == ("/scratch", "/scratch/out-7.txt")


def test_what_is_passed_over_is_said() -> None:
    lines = ["-p gpu", "--qos=high", "--mail-type=END", "--mail-user=a@b", "-e err.txt", "--export=ALL"]
    warnings = built(script=script(*lines)).warnings
    assert len(warnings) == 6
    assert "--partition is passed over: Muster places jobs by what they need" in warnings
    assert built(script=script("--requeue")).warnings == ()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--memm=4G", "train.sh, line 2: unknown option --memm; did you mean 'mem'?"),
        ("--mem=lots", "train.sh, line 2: 'lots' is not a size"),
        ("--time=soon", "line 2: 'soon' is not a time of Slurm"),
        ("-Z 3", "line 2: unknown option -Z"),
        ("--mem", "line 2: --mem needs a value"),
        ("mem=4G", "line 2: 'mem=4G' is not an option"),
        ('--job-name="x', "line 2: a quote is opened"),
        ("--nodes=2-4", "line 2: --nodes=2-4 is not a number"),
        ("--ntasks=-1", "line 2: --ntasks=-1 is not a number"),
        ("--gres=shard:1", "line 2: --gres=shard:1 is not understood"),
        ("--gpus=many:few", "not a number of GPUs"),
        ("--dependency=singleton", "line 2: 'singleton' is not a dependency"),
        ("--dependency=afterok:1?afterok:2", "join them with commas"),
        ("--constraint=a|b", "joined with &"),
        ("--signal=WHAT@3", "write it like USR1@2m"),
        ("--array=x", "line 2: array: 'x' is not a range"),
        ("--job-name=a/b", "line 2: name: 'a/b' looks like a path"),
    ],
)
def test_a_wrong_line_is_named(line: str, words: str) -> None:
    assert words in refusal(script=script(line), script_name="train.sh")


# --- Muster's own lines -----------------------------------------------------------------------------


def own(*lines: str) -> str:
    return "\n".join(["#!/bin/bash", *lines, "python train.py", ""])


def test_a_script_may_say_what_it_is_for_and_how_it_ends() -> None:
    charter = job(
        script=own(
            "#SBATCH --mem=2G",
            "#MUSTER --for \"Does 8B beat 3B?\" --success 'acc >= 0.9'  # and no less",
            "#MUSTER --fail 'acc < 0.5 after 2h'",
            "#MUSTER --failure='loss is nan' --budget 200GPUh --owner ben",
        )
    ).charter
    assert (charter.purpose, charter.owner, charter.budget) == ("Does 8B beat 3B?", "ben", "200 GPUh")
    assert charter.success == ("acc >= 0.9",)
    assert charter.failure == ("acc < 0.5 after 2h", "loss is nan")


def test_muster_s_own_lines_override_slurm_s_and_options_override_both() -> None:
    text = own("#MUSTER --mem 4G --cpus 3", "#SBATCH --mem=2G -c 2", "#MUSTER --hold")
    asked = shape(script=text, options={"cpus": 5})
    assert (asked.memory_bytes, asked.cpus_milli) == (4 * GIB, 5000)
    assert job(script=text).held


def test_of_options_that_are_single_the_last_line_counts() -> None:
    assert shape(script=own("#MUSTER --mem 1G", "#MUSTER --mem=2G")).memory_bytes == 2 * GIB


def test_a_sweep_may_stand_in_the_script() -> None:
    made = built(script=own("#MUSTER --param lr=1,2", "#MUSTER --param seed=1,2,3"))
    assert len(made.indices) == 6


def test_muster_s_own_lines_end_with_the_first_command_and_others_are_comments() -> None:
    text = "#!/bin/sh\n##MUSTER --mem=1G\n# MUSTER --mem=1G\n#MUSTERED\n#MUSTER\necho\n#MUSTER --nonsense\n"
    assert shape(script=text).memory_bytes == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--nope 1", "unknown option --nope"),
        ("--succes x", "did you mean 'success'?"),
        ("--for", "--for needs a value"),
        ("--for ''", "a purpose can't be empty"),
        ("--for=", "a purpose can't be empty"),
        ("for me", "'for' is not an option; write it like --for"),
        ("--", "'--' is not an option"),
        ("-J x", "'-J' is not an option"),
        ("--success 'a >>= 1'", "success: 'a >>= 1'"),
        ("--for 'x", "a quote is opened and not closed"),
        ("--param lr=1 --param lr=2", "a parameter is given twice"),
        ("--hold=maybe", "expected true or false"),
    ],
)
def test_a_slip_in_an_own_line_is_told_with_its_line(line: str, said: str) -> None:
    sentence = refusal(script=own("#SBATCH --mem=1G", f"#MUSTER {line}"), script_name="train.sh")
    assert sentence.startswith("train.sh, line 3: ")
    assert said in sentence
