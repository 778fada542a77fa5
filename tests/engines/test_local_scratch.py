"""Scratch: a folder that goes with the attempt, and a watchdog over what is in it."""

import os
import pwd
import signal
from pathlib import Path

import pytest
from local_bench import LocalLab, until

from muster.engines.local import scratch
from muster.engines.local.scratch import Scratches
from muster.model.events import Exited, Outcome, Started, Vacated
from muster.model.job import Shape
from muster.model.plan import Evict
from muster.model.units import MIB

ASKS = Shape(cpus_milli=100, disk_bytes=4 * MIB)


def counted(kept: Scratches) -> str | None:
    """What is said once all has been counted."""
    said = kept.beyond()
    while said is None and kept.is_counting:
        said = kept.beyond()
    return said


# --- Counting -------------------------------------------------------------------------------------


def test_all_that_is_below_counts_and_only_that(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "large").write_bytes(bytes(8 * MIB))
    folder = tmp_path / "1.scratch"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "file").write_bytes(bytes(MIB))
    os.link(folder / "a" / "b" / "file", folder / "the same again")
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    with (folder / "hole").open("wb") as sparse:
        sparse.truncate(100 * MIB)
    assert counted(Scratches([(str(folder), 2 * MIB)])) is None
    assert counted(Scratches([(str(folder), MIB // 2)])) == (
        "there is more in its scratch folder than the 524288 bytes it asked for"
    )


def test_a_large_folder_is_counted_bit_by_bit_and_then_not_again_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scratch, "_SLICE_SECONDS", 0.0)
    for number in range(20):
        (tmp_path / str(number)).touch()
    kept = Scratches([(str(tmp_path), MIB)])
    looks = 1
    assert kept.beyond() is None
    while kept.is_counting:
        assert kept.beyond() is None
        looks += 1
    assert looks == 21
    assert kept.beyond() is None
    assert not kept.is_counting, "it was counted only just now"


def test_a_folder_that_is_not_there_holds_nothing_and_is_gone(tmp_path: Path) -> None:
    kept = Scratches([(str(tmp_path / "absent"), 0)])
    assert counted(kept) is None
    assert kept.is_gone()


# --- Of a job -------------------------------------------------------------------------------------


def test_a_job_finds_a_folder_of_its_own_that_is_gone_afterwards(lab: LocalLab) -> None:
    script = "cd $MUSTER_SCRATCH_DIR; echo $PWD $TMPDIR; mkdir -p a/b; touch a/b/c; ls -d $PWD; mktemp"
    exited = lab.run("a", "sh", "-c", script, shape=ASKS)
    assert exited.outcome is Outcome.SUCCEEDED
    folder = f"{lab.folder('a')}/1.scratch"
    assert lab.log("a").split()[:3] == [folder, folder, folder]
    assert lab.log("a").splitlines()[-1].startswith(f"{folder}/")
    assert not os.path.exists(folder)


def test_who_asks_for_no_disk_keeps_its_own_place_for_temporary_files(lab: LocalLab) -> None:
    lab.environment["TMPDIR"] = "/var/tmp"
    lab.run("a", "sh", "-c", "echo $TMPDIR [$MUSTER_SCRATCH_DIR]")
    assert lab.log("a") == "/var/tmp []\n"


def test_each_part_of_a_gang_has_its_own(lab: LocalLab) -> None:
    lab.run("a", "sh", "-c", "basename $MUSTER_SCRATCH_DIR; test -d $MUSTER_SCRATCH_DIR", shape=ASKS, parts=2)
    assert [lab.log("a", f"1.{i}") for i in (0, 1)] == ["1.0.scratch\n", "1.1.scratch\n"]
    assert not list(lab.folder("a").glob("*.scratch"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_it_belongs_to_the_jobs_user(lab: LocalLab) -> None:
    exited = lab.run("a", "sh", "-c", "touch $TMPDIR/x; stat -c %u:%a $TMPDIR", shape=ASKS, user="nobody")
    assert exited.outcome is Outcome.SUCCEEDED
    assert lab.log("a") == f"{pwd.getpwnam('nobody').pw_uid}:700\n"
    assert not list(lab.folder("a").glob("*.scratch"))


def test_who_puts_more_there_than_it_asked_for_is_told_to_end(lab: LocalLab) -> None:
    script = "trap 'cat $MUSTER_STOP_FILE; exit 3' TERM; head -c 6M /dev/zero >$TMPDIR/x; sleep 60 & wait"
    exited = lab.run("a", "sh", "-c", script, shape=ASKS)
    assert (exited.outcome, exited.exit_code) == (Outcome.FAILED, 3)
    sentence = "there is more in its scratch folder than the 4194304 bytes it asked for"
    said, stop_file = lab.log("a").splitlines()[:2]
    assert said == f"muster: {sentence}"
    assert sentence in stop_file


def test_who_stays_within_it_is_left_alone(lab: LocalLab) -> None:
    script = "for i in 1 2 3 4; do head -c 3M /dev/zero >$TMPDIR/x; sleep 0.4; rm $TMPDIR/x; done"
    assert lab.run("a", "sh", "-c", script, shape=ASKS).outcome is Outcome.SUCCEEDED


def test_it_goes_with_an_evicted_attempt_and_the_next_has_another(lab: LocalLab) -> None:
    job = lab.sh("a", "touch $TMPDIR/x; ls -A $TMPDIR; basename $TMPDIR; sleep 60", shape=ASKS)
    until(lambda: "1.scratch" in lab.log("a"), "it to begin")
    lab.engine.act(Evict("a", 1, "priority"))
    lab.wait(Vacated, job)
    assert not list(lab.folder("a").glob("*.scratch"))
    lab.start(job, attempt=2)
    lab.wait(Started, job, attempt=2)
    until((lab.folder("a") / "2.scratch" / "x").exists, "it to begin again")


def test_it_is_watched_and_removed_by_a_keeper_that_takes_over(lab: LocalLab) -> None:
    job = lab.sh("a", "touch $TMPDIR/begun; sleep 60", shape=ASKS)
    folder = lab.folder("a") / "1.scratch"
    until((folder / "begun").exists, "it to begin")
    os.kill(lab.engine.keeper_pid, signal.SIGKILL)
    (folder / "large").write_bytes(bytes(6 * MIB))
    assert lab.wait(Exited, job).outcome is Outcome.FAILED
    assert "more in its scratch folder" in lab.log("a")
    assert not folder.exists()


def test_a_link_in_its_place_is_removed_and_not_what_it_points_to(lab: LocalLab, tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    script = f"cd /; rm -r $MUSTER_SCRATCH_DIR; ln -s {tmp_path} $MUSTER_SCRATCH_DIR"
    assert lab.run("a", "sh", "-c", script, shape=ASKS).outcome is Outcome.SUCCEEDED
    assert (tmp_path / "precious").exists()
    assert not os.path.lexists(lab.folder("a") / "1.scratch")


def test_what_holds_a_job_to_its_disk_is_told_honestly(lab: LocalLab) -> None:
    told = {g.what: (g.amount, g.how, g.by) for g in lab.engine.grants(lab.add("a", "true", shape=ASKS))}
    assert told["disk"] == (4 * MIB, "advisory", "watchdog")


def test_others_end_while_a_large_folder_is_being_removed(lab: LocalLab) -> None:
    script = "cd $TMPDIR; for i in 1 2 3; do mkdir $i; (cd $i; seq 500 | xargs touch); done"
    large = lab.begin("a", "sh", "-c", script, shape=Shape(cpus_milli=100, disk_bytes=64 * MIB))
    until(lambda: lab.folder("a").joinpath("1.scratch", "3").exists(), "it to fill")
    for name in "bcd":
        assert lab.run(name, "true").outcome is Outcome.SUCCEEDED
    assert lab.wait(Exited, large).outcome is Outcome.SUCCEEDED
    assert not (lab.folder("a") / "1.scratch").exists()
