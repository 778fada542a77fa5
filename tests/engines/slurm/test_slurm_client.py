"""Calling Slurm's commands, tried on small scripts on PATH that behave like them."""

import stat
from pathlib import Path

import pytest
from slurm_situations import CARRIED

from muster.engines.slurm import errors
from muster.engines.slurm.commands import Commands
from muster.engines.slurm.meter import shown
from muster.engines.slurm.versions import Version
from muster.model.errors import BadInput
from muster.model.usage import AtEnd
from servers import until


class Folder:
    """A folder of commands, each of which writes down how it was called."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"

    def make(self, name: str, body: str) -> None:
        path = self.folder / name
        said = f'printf "%s\\n" "{name} $*" >> "{self.log}"'
        path.write_text(f"#!/bin/sh\n{said}\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def answering(self, name: str, file: str, code: int = 0) -> None:
        self.make(name, f'cat "{CARRIED / file}"; exit {code}')

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    return Folder(tmp_path)


def _version(commands: Folder, version: str) -> None:
    """sinfo --version, and the list of nodes of that version for any other question."""
    nodes = f"{version}/idle.{'sinfo' if version < '23' else 'scontrol-node'}.json"
    commands.make(
        "sinfo", f'[ "$1" = --version ] && echo "slurm-wlm {version}" && exit\ncat "{CARRIED / nodes}"'
    )
    commands.make(
        "scontrol",
        f'case "$*" in *partition*) cat "{CARRIED / version / "idle.scontrol-partition.txt"}";;'
        f' *reservation*) echo "No reservations in the system";; *) cat "{CARRIED / nodes}";; esac',
    )


@pytest.mark.parametrize("version", ["22.05.8", "24.11.5", "26.05.5"])
def test_a_pass_asks_once_for_each_kind_of_thing(commands: Folder, version: str) -> None:
    _version(commands, version)
    commands.answering(
        "squeue", f"{version}/{'batchA-running' if version < '23' else 'running-gang'}.squeue.json"
    )
    form = "txt" if version < "23" else "json"
    commands.answering("sacct", f"{version}/preempted-running-again.sacct-D.{form}")
    commands.answering("sstat", f"{version}/running-gang.sstat.txt")
    slurm = Commands()
    assert len(slurm.nodes()) == 4
    assert [part.name for part in slurm.partitions()] == ["gpu", "cpu", "short"]
    assert slurm.reservations() == ()
    jobs = slurm.jobs()
    assert len(slurm.attempts(since=1_794_776_000.0)) == 2
    assert slurm.use(job.id for job in jobs)
    assert len(commands.calls) == 7  # and the version once
    slurm.jobs()
    slurm.nodes()
    assert len(commands.calls) == 9
    assert any("--starttime=2026-11-15T20:53:20" in call for call in commands.calls)


def test_a_missing_command_says_where_to_run(commands: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(commands.folder))  # also where Slurm is installed
    with pytest.raises(errors.NotInstalled, match=r"no command squeue here: run Muster where"):
        Commands().jobs()


def test_a_command_that_may_not_be_run_says_so(commands: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(commands.folder))
    (commands.folder / "squeue").write_text("#!/bin/sh\n")
    with pytest.raises(errors.NotInstalled):
        Commands().jobs()


@pytest.mark.parametrize(
    ("code", "stderr", "kind"),
    [
        (1, "squeue: error: Could not establish a configuration source", errors.BadConfiguration),
        (1, "squeue: fatal: Unable to process configuration file", errors.BadConfiguration),
        (
            1,
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
            errors.ControllerDown,
        ),
        (8, "", errors.ControllerDown),
        (210, "", errors.Denied),
        (1, "slurm_load_jobs error: Protocol authentication error", errors.NotAuthenticated),
        (1, "something new", errors.Refused),
        (3, "", errors.Refused),
    ],
)
def test_a_failure_is_one_sentence(
    commands: Folder, code: int, stderr: str, kind: type[errors.SlurmError]
) -> None:
    commands.make("squeue", f'echo "{stderr}" >&2; exit {code}')
    with pytest.raises(kind) as told:
        Commands().jobs()
    assert type(told.value) is kind
    assert "\n" not in str(told.value)


def test_a_configuration_that_is_not_there_is_told_at_once(commands: Folder) -> None:
    commands.make("squeue", "sleep 60")
    with pytest.raises(errors.BadConfiguration, match=r"SLURM_CONF names /no/slurm\.conf"):
        Commands("/no/slurm.conf").jobs()
    assert commands.calls == []


def test_a_command_that_keeps_trying_for_its_configuration_is_not_just_slow(
    commands: Folder,
) -> None:
    commands.make("squeue", 'echo "error: unable to status file /x/slurm.conf, retrying" >&2; sleep 60')
    with pytest.raises(errors.BadConfiguration):
        Commands(limit_seconds=0.3).jobs()


def test_a_silent_failure_of_the_controller_is_no_empty_queue(commands: Folder) -> None:
    commands.answering("squeue", "22.05.8/slurmctld-down.squeue.json")  # exit 0, and no jobs
    with pytest.raises(errors.ControllerDown):
        Commands().jobs()


def test_a_dead_munge_is_told_from_a_dead_controller(commands: Folder) -> None:
    commands.make(
        "squeue",
        f'echo "squeue: error: Munge encode failed" >&2; cat "{CARRIED / "22.05.8/munge-down.squeue.json"}"',
    )
    with pytest.raises(errors.NotAuthenticated, match="munge"):
        Commands().jobs()


def test_what_the_ended_have_used_is_known_to_the_millisecond(commands: Folder) -> None:
    rows = (
        ("JobIDRaw", "End", "TotalCPU", "MaxRSS"),
        ("12", "2026-11-16T14:08:18", "1-00:01:01.500", ""),
        ("12.batch", "2026-11-16T14:08:18", "00:01.000", "100K"),
        ("12.0", "2026-11-16T14:08:18", "00:00.500", "2M"),
        ("13", "Unknown", "00:07.000", ""),
    )
    text = "\n".join("|".join(row) for row in rows)
    commands.make("sacct", f"cat <<'END'\n{text}\nEND")
    assert Commands().spent((12, 13)) == {12: AtEnd(86461.5, 2 << 20)}
    assert "--jobs=12,13" in commands.calls[0]


def test_tasks_of_an_array_are_counted_once_though_told_twice(commands: Folder) -> None:
    rows = (
        "JobID|NTasks|MaxRSS|TRESUsageInTot",
        *("5.batch|1|108K|cpu=00:00:03,mem=108K", "1.batch|1|112K|cpu=00:00:04,mem=112K"),
        "5.batch|1|108K|cpu=00:00:03,mem=108K",
    )
    text = "\n".join(rows)
    commands.make("sstat", f"cat <<'END'\n{text}\nEND")
    found = shown(Commands(), {("s1_3", 1): (1,), ("s1_1", 1): (5,)})
    assert {key[0]: one.cpu_seconds for key, one in found.items()} == {"s1_3": 4.0, "s1_1": 3.0}


def test_a_slow_command_is_ended_with_all_that_it_started(commands: Folder) -> None:
    commands.make("squeue", f'sleep 60 & echo $! > "{commands.folder / "child"}"; wait')
    with pytest.raises(errors.TooSlow, match=r"within 0\.5 s"):
        Commands(limit_seconds=0.5).jobs()
    child = int((commands.folder / "child").read_text())
    until(lambda: not _runs(child), "what it started to be gone")  # killed, which takes a moment


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "body", ["", "echo hello", "printf '{\"jobs\": [{'", "head -c 1000 /dev/zero", "kill -9 $$"]
)
def test_garbage_changes_nothing(commands: Folder, body: str) -> None:
    commands.make("squeue", body)
    with pytest.raises(errors.BadAnswer, match="nothing was changed"):
        Commands().jobs()


def test_the_environment_is_ours(commands: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    commands.make("scontrol", f'env > "{commands.folder / "env"}"')
    conf = commands.folder / "slurm.conf"
    conf.touch()
    Commands(str(conf)).partitions()
    seen = (commands.folder / "env").read_text().splitlines()
    assert {f"SLURM_CONF={conf}", "LC_ALL=C.UTF-8", "TZ=UTC"} <= set(seen)
    assert not [line for line in seen if line.startswith(("SQUEUE", "SLURM_TIME"))]


def test_a_script_is_handed_over_as_it_is_and_its_id_comes_back(commands: Folder) -> None:
    commands.make(
        "sbatch",
        f'cat > "{commands.folder / "script"}"; printf "%s" "$2" > "{commands.folder / "name"}"; echo 513',
    )
    name = """we|ird 'näme' "q" $(touch x) `id`\nsecond line"""
    script = "#!/bin/sh\necho 'done'; exit 0\n"
    assert Commands().submit([f"--job-name={name}"], script) == 513
    assert (commands.folder / "script").read_text() == script
    assert (commands.folder / "name").read_text() == f"--job-name={name}"


def test_what_slurm_refuses_says_what_to_do(commands: Folder) -> None:
    commands.make(
        "sbatch", 'echo "sbatch: error: Batch job submission failed: Invalid qos specification" >&2; exit 1'
    )
    with pytest.raises(errors.Refused, match=r"Invalid qos specification .*; name one of yours"):
        Commands().submit([], "#!/bin/sh\n")


def test_when_a_job_would_start_is_on_stderr(commands: Folder) -> None:
    commands.make("sbatch", 'echo "sbatch: Job 7 to start at 2026-11-15T21:47:37 a using 3 processors" >&2')
    assert Commands().would_start([], "#!/bin/sh\n") == 1_794_779_257.0


def test_many_jobs_are_one_call(commands: Folder) -> None:
    commands.make("scancel", "")
    commands.make("scontrol", "")
    slurm = Commands()
    slurm.cancel([1, "6_2", "7+1"])
    slurm.cancel([4], signal="USR1")
    slurm.control("hold", [1, 2, 3])
    slurm.cancel([])
    assert slurm.use([]) == ()
    assert commands.calls == ["scancel 1 6_2 7+1", "scancel --signal=USR1 --full 4", "scontrol hold 1,2,3"]


@pytest.mark.parametrize("bad", ["", "abc", "-u root", "1;2", "12.batch", "1 2", "١", "--user=root", "12\n"])
def test_what_is_no_job_is_never_passed_on(commands: Folder, bad: str) -> None:
    commands.make("scancel", "")
    with pytest.raises(BadInput):
        Commands().cancel([bad])
    with pytest.raises(BadInput):
        Commands().control("hold", [bad])
    assert commands.calls == []


def test_odd_orders_are_refused(commands: Folder) -> None:
    with pytest.raises(BadInput):
        Commands().control("shutdown", [1])
    with pytest.raises(BadInput):
        Commands().cancel([1], signal="USR1 --user=root")
    with pytest.raises(BadInput):
        Commands().submit(["--job-name=a\0b"], "")
    with pytest.raises(BadInput):
        Commands().cancel(range(5000))


def test_the_version_is_asked_once(commands: Folder) -> None:
    commands.make("sinfo", "echo slurm 24.11.5")
    slurm = Commands()
    assert slurm.version() == slurm.version() == Version(24, 11, 5)
    assert commands.calls == ["sinfo --version"]


def test_who_only_observes_gives_no_order_whoever_asks(commands: Folder) -> None:
    for name in ("sbatch", "scancel", "scontrol"):
        commands.make(name, "echo 1")
    slurm = Commands(read_only=True)
    for order in (
        lambda: slurm.submit((), "#!/bin/sh\n"),
        lambda: slurm.cancel([1]),
        lambda: slurm.control("hold", [1]),
        lambda: slurm.limit(1, 60.0),
        lambda: slurm.drain("n1", "fan"),
        lambda: slurm.undrain("n1"),
    ):
        with pytest.raises(errors.Denied, match="only observes"):
            order()
    assert commands.calls == []
