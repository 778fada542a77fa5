"""application.yaml: what it may say, and the sentence when it says something else."""

import pytest
from wants import built, job, refusal

from muster.application.yaml_text import read_yaml
from muster.model.errors import BadInput
from muster.model.job import After, Checkpoint, Dependency, Together
from muster.model.run import Notice
from muster.model.units import GIB

WHOLE = """\
kind: Job
name: finetune-8b
effort: llama-eval
owner: ana
for: Does 8B beat the 3B baseline on the held-out set?
success: val_acc >= 0.92
failure: [val_acc < 0.5 after 2h, val_loss stalls for 90m, loss is nan]
budget: 200 GPUh
until: 2026-12-01
compute: {gpus: 4, gpu_model: [A40, A100], gpu_memory: 40G, cpus: 16, memory: 64G, time: 8h, together: rack}
storage: {scratch: 200G, weights: {path: /data/weights, read: true}}
network: {ports: [], outside: false}
checkpoint: {every: 30m, signal: SIGUSR1, grace: 2m}
metrics: {from: json-lines}
run: python train.py --config 8b.yaml
"""


def test_the_whole_of_a_file_is_read() -> None:
    made = built(yaml=WHOLE)
    asked = made.job.gang.parts[0].shape
    assert made.job.name == "finetune-8b"
    assert (asked.gpus, asked.gpu_models, asked.gpu_memory_bytes) == (4, ("A40", "A100"), 40 * GIB)
    assert (asked.cpus_milli, asked.disk_bytes, made.job.gang.together) == (16000, 200 * GIB, Together.RACK)
    assert made.job.checkpoint == Checkpoint(every_seconds=1800)
    assert made.job.run is not None
    assert made.job.run.notice == Notice(10, 120)
    assert made.job.run.argv == ("/bin/sh", "-c", "python train.py --config 8b.yaml")
    assert len(made.job.charter.failure) == 3
    assert made.job.charter.until is not None


def test_what_has_no_effect_yet_is_said() -> None:
    warnings = " ".join(built(yaml=WHOLE).warnings)
    for word in ("storage 'weights'", "network"):
        assert word in warnings


def test_run_may_be_a_list_or_a_script() -> None:
    listed = job(yaml="run: [python, train.py, --lr, 1e-3]").run
    assert listed is not None
    assert listed.argv == ("python", "train.py", "--lr", "1e-3")
    script = job(yaml="run: |\n  #!/bin/bash\n  echo hello\n").run
    assert script is not None
    assert (script.argv, script.script) == ((), "#!/bin/bash\necho hello\n")


def test_options_and_a_command_override_the_file() -> None:
    made = job(yaml=WHOLE, options={"gpus": 2, "name": "smaller"}, command=("true",))
    assert (made.gang.parts[0].shape.gpus, made.name) == (2, "smaller")
    assert made.gang.parts[0].shape.memory_bytes == 64 * GIB
    assert made.run is not None
    assert made.run.argv == ("true",)


def test_the_same_keys_can_be_sent_as_a_value() -> None:
    made = job(application={"run": ["true"], "compute": {"gpus": 2, "cpus": 1.5}, "hold": True})
    assert (made.gang.parts[0].shape.gpus, made.held) == (2, True)


def test_times_that_look_like_numbers_stay_what_was_written() -> None:
    assert job(yaml="run: x\ncompute: {time: 8:00:00}").time_limit_seconds == 28800


def test_others_to_wait_for_are_a_list_or_by_how_they_end() -> None:
    assert job(yaml="run: x\nafter: [1, 2]").after == (Dependency("1"), Dependency("2"))
    assert job(yaml="run: x\nafter: {not_ok: 3}").after == (Dependency("3", After.NOT_OK),)


def test_a_sweep_is_a_mapping_whose_values_may_have_commas() -> None:
    made = built(yaml='run: x\nparams: {lr: [1e-3, 1e-4], what: ["a,b"]}')
    assert made.sweep == (("lr", ("1e-3", "1e-4")), ("what", ("a,b",)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Job\nnmae: x\nrun: x", "application.yaml, line 2: unknown key 'nmae'; did you mean 'name'?"),
        ("run: x\ncompute:\n  gpu: 1", "line 3: unknown key 'gpu' in compute; did you mean 'gpus'?"),
        ("run: x\ncompute:\n  memory: lots", "line 3: memory: 'lots' is not a size"),
        ("run: x\nfailure:\n  - loss is nan\n  - nonsense", "line 2: failure: 'nonsense' is not a condition"),
        ("run: x\ncompute: 4", "line 2: compute should be a mapping, not text"),
        ("run: x\ncompute: {gpus: [1]}", "line 2: compute.gpus should be a number or text, not a list"),
        ("run: x\nhold: perhaps", "line 2: hold should be true or false, not text"),
        ("kind: Service\nrun: x", "line 1: kind Service comes later"),
        ("kind: Effort", "line 1: kind Effort comes later"),
        ("kind: Pod\nrun: x", "line 1: unknown kind 'Pod'"),
        ("name: x", "nothing to run"),
        ("- run: x", "line 1: expected keys and values"),
        ("just text", "expected keys and values"),
        ("", "expected keys and values"),
        ("run: x\nrun: y", "line 2: 'run' is written twice"),
        ("run: &a x\nname: *a", "line 1: anchors and aliases"),
        ("run: !!python/object/apply:os.system [x]", "line 1: tags (!) are not read"),
        ("run: x\n---\nrun: y", "line 2: a second document"),
        ("run: [\n", "this is not YAML"),
        ("kind: Job\nrun: 'x", "line 2: this is not YAML"),
        ("run:\n\t- x", "line 2: this is not YAML"),
        ("run: \x07", "characters that no text has"),
        ("run: \ud800", "characters that no text has"),
        ("[" * 50, "levels of nesting"),
        ("? [a, b]\n: c", "a key must be a plain word"),
        ("a: " + "x" * 1_000_001, "larger than a megabyte"),
        ("run: x\nstorage: {weights: /data}", "should be like {path: /data/weights, read: true}"),
        ("run: x\nstorage: {w: {path: data}}", "needs an absolute path"),
        ("run: x\nmetrics: {from: json-line}", "did you mean 'json-lines'?"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, words: str) -> None:
    assert words in refusal(yaml=text)


def test_a_hundred_thousand_brackets_cost_a_sentence() -> None:
    with pytest.raises(BadInput, match="levels of nesting"):
        read_yaml("[" * 100_000, "deep.yaml")
