"""What goes wrong between Muster and Slurm, as one sentence each that says what to do.

Slurm's commands tell causes by words on stderr and hardly by exit codes (1 for nearly all; ``scancel``
210 for no permission, 8 for no controller), so it is the words that are looked at, the most telling
first: a dead munge makes the controller look dead, too.
"""

from muster.model.errors import MusterError

_LETTERS = 200


class SlurmError(MusterError):
    """Slurm could not be asked, or said no."""


class NotInstalled(SlurmError):
    """A command of Slurm is not there."""


class BadConfiguration(SlurmError):
    """Slurm's commands find no configuration that they can use."""


class NotAuthenticated(SlurmError):
    """Slurm does not believe who is asking."""


class ControllerDown(SlurmError):
    """slurmctld does not answer."""


class Unreachable(SlurmError):
    """slurmrestd does not answer."""


class AccountingDown(SlurmError):
    """slurmdbd does not answer, or there is none."""


class Denied(SlurmError):
    """Slurm does not let this user do that."""


class UnknownJob(SlurmError):
    """Slurm has no such job, or none that this user may see: it says the same of both."""


class Refused(SlurmError):
    """Slurm takes no such job, or does no such thing."""

    exit_code = 2


class TooSlow(SlurmError):
    """A command took longer than it may. Whether it did what it was to do is not known."""


class BadAnswer(SlurmError):
    """An answer can't be read, so nothing follows from it."""

    def __init__(self, command: str, why: str) -> None:
        super().__init__(
            f"the answer of {command} can't be read ({why}); nothing was changed, it is asked again"
        )


_PING = "see `scontrol ping`, and `systemctl status slurmctld` on its host"
_CONF = "set SLURM_CONF to the path of the cluster's slurm.conf"
_MUNGE = "start munged here, with the cluster's munge.key"
_DBD = "start slurmdbd; until then what has ended is known from squeue alone"

# In this order: words on stderr (in small letters) → which error, and its sentence. {c} is the command.
_CAUSES: tuple[tuple[tuple[str, ...], type[SlurmError], str], ...] = (
    (
        ("munge", "authentication error", "authentication"),
        NotAuthenticated,
        f"Slurm can't authenticate {{c}}: {_MUNGE}",
    ),
    (
        (
            *("configuration source", "slurm.conf", "configuration file", "parse error", "parsing error"),
            *("fatal: unable to process configuration", "no slurmctldhost", "unable to establish config"),
        ),
        BadConfiguration,
        f"{{c}} finds no usable configuration of Slurm: {_CONF}",
    ),
    (
        ("talking to the database", "persistent connection", "slurmdbd", "accounting storage is disabled"),
        AccountingDown,
        f"Slurm's accounting does not answer {{c}}: {_DBD}",
    ),
    (
        (
            *("unable to contact slurm controller", "connection refused", "connection timed out"),
            *("socket timed out", "failed while looking for", "no route to host", "restore slurmctld"),
        ),
        ControllerDown,
        f"Slurm's controller does not answer {{c}}: {_PING}",
    ),
    (
        (
            *("permission denied", "access/permission", "invalid user id", "only admins", "not permitted"),
            *("privilege",),
        ),
        Denied,
        "Slurm does not let this user do that with {c}: ask the job's owner or a Slurm operator to",
    ),
    (
        ("invalid job id", "couldn't get steps for"),
        UnknownJob,
        "Slurm knows no such job, or shows it to others only: look at `squeue --all` and `sacct -D`",
    ),
)
_EXITS = {8: ControllerDown, 210: Denied}
_BY_EXIT: dict[type[SlurmError], str] = {kind: sentence for _, kind, sentence in _CAUSES}

# What sbatch says when it takes no job → what to do.
_REFUSALS = (
    ("partition", "name one that `sinfo` lists"),
    ("account", "name one of yours, as `sacctmgr show assoc user=$USER` lists them"),
    ("qos", "name one of yours, as `sacctmgr show assoc user=$USER format=qos` lists them"),
    ("feature", "name one that `sinfo -o %f` lists"),
    ("gres", "name GPUs as `sinfo -o %G` does"),
    ("license", "name one that `scontrol show licenses` lists"),
    ("reservation", "name one that `scontrol show reservation` lists, and that is for you"),
    ("array", "ask for fewer tasks than `scontrol show config` has as MaxArraySize"),
    ("dependency", "name jobs that Slurm still knows"),
    ("node name", "name nodes that `sinfo -N` lists"),
    (
        "node configuration",
        "ask for what some node of the partition has, as `sinfo -o '%P %c %m %G'` lists them",
    ),
    ("memory", "ask for less, or for a partition with larger nodes"),
    ("time", "write it as minutes or D-HH:MM:SS"),
    ("option", "leave it out: this version of Slurm does not have it"),
    ("unable to open file", "name a script that is there"),
    ("held state", "release it first"),
    ("already completed", "it is over"),
)


def fault(command: str, code: int, stdout: str, stderr: str) -> SlurmError:
    """The error that a command's exit and its words amount to."""
    said = f"{stderr}\n{stdout[:2000]}".lower()
    for words, kind, sentence in _CAUSES:
        if any(word in said for word in words):
            return kind(sentence.format(c=command))
    if code in _EXITS:
        return _EXITS[code](_BY_EXIT[_EXITS[code]].format(c=command))
    why = _last_line(stderr or stdout)
    return Refused(f"{command} was refused: {why} (exit {code}); {advice(said)}")


def advice(said: str) -> str:
    """What to do about a refusal in these words, which are in small letters."""
    for word, what in _REFUSALS:
        if word in said:
            return what
    return "run it by hand to see more"


def _last_line(text: str) -> str:
    """The last line tells the cause; those before, how it came to that."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("Try ")]
    said = lines[-1].strip() if lines else "it said nothing"
    return said.removeprefix("sbatch: error: ").removeprefix("Batch job submission failed: ")[:_LETTERS]
