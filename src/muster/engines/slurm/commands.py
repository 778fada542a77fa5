"""Slurm's commands, called: each with a time limit, in the C locale and in UTC, never through a shell.

Nothing of the caller's ``SLURM_…``, ``SQUEUE_…`` and the like gets through: they change what is answered.
"""

import contextlib
import os
import pwd
import signal as signals
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import IO

import msgspec

from muster.engines.slurm import attempts as accounting
from muster.engines.slurm import jobs, nodes, texts
from muster.engines.slurm.answers import (
    SlurmAttempt,
    SlurmJob,
    SlurmNode,
    SlurmPartition,
    SlurmReservation,
    SlurmUse,
)
from muster.engines.slurm.client import (
    LEVELS,
    LIMIT_SECONDS,
    check_may_order,
    checked_ids,
    checked_node,
    checked_signal,
    checked_verb,
    environment,
    whole_minutes,
)
from muster.engines.slurm.errors import (
    BadAnswer,
    BadConfiguration,
    Denied,
    NotInstalled,
    Refused,
    SlurmError,
    TooSlow,
    UnknownJob,
    fault,
)
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.versions import JSON_EVERYWHERE, Version, check_known, parse_version
from muster.model.errors import BadInput
from muster.model.usage import AtEnd

_MOST_WORDS_BYTES = 128 * 1024  # of one argument: what Linux takes
_STAMP = "%Y-%m-%dT%H:%M:%S"


class Done(msgspec.Struct, frozen=True):
    """What a command left."""

    code: int
    stdout: bytes
    stderr: str


class Commands:
    """A cluster, as its commands on this machine show it."""

    way = "its commands"

    def __init__(
        self,
        conf: str | None = None,
        *,
        limit_seconds: float = LIMIT_SECONDS,
        notices: Notices | None = None,
        kept_open: tuple[int, ...] = (),
        read_only: bool = False,
    ) -> None:
        """``kept_open``: descriptors that commands inherit, so that a lock on them outlasts us if they do.

        ``read_only``: whatever would change something is refused here, whoever asks for it.
        """
        self.notices = notices or Notices()
        self._queue = jobs.Queue(self.notices)
        self.read_only = read_only
        self._kept_open = kept_open
        self._limit_seconds = limit_seconds
        self._environment = environment(conf or os.environ.get("SLURM_CONF"))
        self._version: Version | None = None

    def ready(self) -> None:
        """They are here, and find a configuration."""
        self.version()

    def close(self) -> None:
        """Between two commands nothing is held."""

    # --- Asking ---

    def version(self) -> Version:
        """Asked once: it does not take a controller."""
        if self._version is None:
            self._version = parse_version(self._asked("sinfo", "--version").stdout.decode(errors="replace"))
            check_known(self._version, self.notices)
        return self._version

    def jobs(self) -> tuple[SlurmJob, ...]:
        """The whole queue, with those that ended lately. 22.05 would ignore any filter."""
        done = self._asked("squeue", "--json", "--all", "--states=all")
        return self._queue.read(done.stdout, stderr=done.stderr)

    def nodes(self) -> tuple[SlurmNode, ...]:
        """All nodes: a question about one can be answered from what was true before."""
        if self.version() < JSON_EVERYWHERE:
            done = self._asked("sinfo", "--json", "--all")
        else:
            done = self._asked("scontrol", "--json", "--all", "show", "node")
        return nodes.read_nodes(done.stdout, self.notices, stderr=done.stderr)

    def partitions(self) -> tuple[SlurmPartition, ...]:
        return texts.read_partitions(self._text("scontrol", "--all", "--oneliner", "show", "partition"))

    def reservations(self) -> tuple[SlurmReservation, ...]:
        return texts.read_reservations(self._text("scontrol", "--oneliner", "show", "reservation"))

    def attempts(self, since: float) -> tuple[SlurmAttempt, ...]:
        """All tries that were pending, running or ended after ``since``, of whoever lets us see them."""
        window = ("--duplicates", "--allusers", f"--starttime={_stamp(since)}")
        if self.version() < JSON_EVERYWHERE:
            columns = "--format=" + ",".join(accounting.COLUMNS)
            return accounting.read_attempts_text(self._text("sacct", "--parsable2", *window, columns))
        done = self._asked("sacct", "--json", *window)
        return accounting.read_attempts(done.stdout, self.notices, stderr=done.stderr)

    def use(self, ids: Iterable[int]) -> tuple[SlurmUse, ...]:
        """What the steps of running jobs use: of one's own, or of all as root. Who is gone is left out."""
        listed = ",".join(map(str, checked_ids(ids)))
        if not listed:
            return ()
        columns = "--format=JobID,NTasks,MaxRSS,TRESUsageInTot"
        return texts.read_use(self._text("sstat", "--allsteps", "--parsable2", f"--jobs={listed}", columns))

    def spent(self, ids: Iterable[int]) -> dict[int, AtEnd]:
        listed = ",".join(map(str, checked_ids(ids)))
        if not listed:
            return {}
        columns = "--format=" + ",".join(texts.SPENT)
        return texts.read_spent(self._text("sacct", "--allusers", "--parsable2", f"--jobs={listed}", columns))

    def topology(self) -> str:
        """What is near to what, as ``scontrol show topology`` tells it; empty where nobody has said."""
        try:
            return self._text("scontrol", "show", "topology")
        except Refused:  # a cluster without one
            return ""

    def script(self, job: int | str) -> str | None:
        """The batch script of a job: of one's own, or of all as an operator. None: none, or not for us."""
        (listed,) = checked_ids((job,))
        try:
            return self._text("scontrol", "write", "batch_script", listed, "-")
        except (Denied, Refused, UnknownJob):
            return None

    def is_operator(self) -> bool | None:
        """Whether this user may act on everybody's jobs: root, Slurm's own user, or one with such a level."""
        if os.geteuid() == 0:
            return True
        name = pwd.getpwuid(os.geteuid()).pw_name
        try:
            told = self._text("scontrol", "show", "config")
            if f"({os.geteuid()})" in next((w for w in told.splitlines() if w.startswith("SlurmUser ")), ""):
                return True
            level = self._text("sacctmgr", "-nP", "show", "user", name, "format=AdminLevel")
        except SlurmError:
            return None
        return level.strip() in LEVELS

    # --- Ordering ---

    def submit(self, options: Sequence[str], script: str) -> int:
        """Hand over a script; the id of the job. ``TooSlow``: look it up before trying again."""
        done = self._ordered("sbatch", "--parsable", *options, given=script.encode())
        return texts.read_submitted(done.stdout.decode(errors="replace"))

    def would_start(self, options: Sequence[str], script: str) -> float | None:
        """When Slurm would start it; nothing is submitted. None: it does not say."""
        done = self._asked("sbatch", "--test-only", *options, given=script.encode())
        return texts.read_would_start(done.stderr)

    def limit(self, job: int, seconds: float | None) -> None:
        """Another time limit, in whole minutes; None: none. To allow more takes an operator."""
        minutes = "UNLIMITED" if seconds is None else str(whole_minutes(seconds))
        self._ordered("scontrol", "update", f"JobId={checked_ids([job])[0]}", f"TimeLimit={minutes}")

    def named(self, names: Iterable[str], since: float) -> tuple[tuple[int, str, str], ...]:
        """What accounting has under these names, which are without commas and pipes: number, user, name."""
        listed = ",".join(names)
        if not listed:
            return ()
        window = ("--allocations", "--allusers", "--parsable2", f"--starttime={_stamp(since)}")
        return texts.read_named(
            self._text("sacct", *window, f"--name={listed}", "--format=JobIDRaw,User,JobName")
        )

    def kill_wait_seconds(self) -> float:
        """How long a job that is cancelled has between SIGTERM and SIGKILL."""
        return texts.read_kill_wait(self._text("scontrol", "show", "config"))

    def cancel(
        self, ids: Iterable[int | str], *, signal: str | None = None, steps_only: bool = False
    ) -> None:
        """Cancel, or send a signal to all of it, or to its steps and not to the script that has started them.

        What is over already, or unknown, is no error to Slurm.
        """
        listed = checked_ids(ids)
        to = () if signal is None else (f"--signal={checked_signal(signal)}",)
        if listed:
            extra = to if signal is None or steps_only else (*to, "--full")
            self._ordered("scancel", *extra, *listed)

    def control(self, verb: str, ids: Iterable[int | str]) -> None:
        """``hold``, ``release``, ``suspend``, ``resume``, ``requeue`` and the like."""
        verb, listed = checked_verb(verb), checked_ids(ids)
        if listed:
            self._ordered("scontrol", verb, ",".join(listed))

    def drain(self, node: str, because: str) -> None:
        """Nothing new starts there. For operators."""
        name = f"NodeName={checked_node(node)}"
        self._ordered("scontrol", "update", name, "State=DRAIN", f"Reason={because}")

    def undrain(self, node: str) -> None:
        self._ordered("scontrol", "update", f"NodeName={checked_node(node)}", "State=RESUME")

    # --- Calling ---

    def _text(self, *words: str) -> str:
        return self._asked(*words).stdout.decode(errors="replace")

    def _ordered(self, *words: str, given: bytes = b"") -> Done:
        check_may_order(words[0], read_only=self.read_only)
        return self._asked(*words, given=given)

    def _asked(self, *words: str, given: bytes = b"") -> Done:
        done = self._run(words, given)
        if done.code:
            raise fault(words[0], done.code, done.stdout.decode(errors="replace"), done.stderr)
        return done

    def _run(self, words: Sequence[str], given: bytes) -> Done:
        _check_words(words)
        _check_conf(self._environment.get("SLURM_CONF"))
        # An answer may have a hundred megabytes: in memory of its own it is read at once, not pipe by pipe.
        with open(os.memfd_create(words[0]), "r+b") as answer, self._started(words, answer) as process:
            try:
                _, stderr = process.communicate(given, timeout=self._limit_seconds)
            except subprocess.TimeoutExpired:
                raise _too_slow(words[0], self._limit_seconds, _end(process)) from None
            answer.seek(0)
            stdout = answer.read()
        if process.returncode < 0:
            raise BadAnswer(words[0], f"it was killed by signal {-process.returncode}")
        return Done(process.returncode, stdout, stderr.decode(errors="replace"))

    def _started(self, words: Sequence[str], answer: IO[bytes]) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(
                words,
                stdin=pipe,
                stdout=answer,
                stderr=pipe,
                env=self._environment,
                start_new_session=True,
                pass_fds=self._kept_open,
            )
        except FileNotFoundError:
            raise NotInstalled(
                f"there is no command {words[0]} here: run Muster where Slurm's commands are, "
                "as on a login node, or put their folder on PATH"
            ) from None
        except OSError as wrong:
            raise NotInstalled(
                f"the command {words[0]} can't be run ({wrong.strerror}): ask who installed Slurm here"
            ) from None


def _end(process: subprocess.Popen[bytes]) -> str:
    """With whatever it has started: the session is its own. What it had said on stderr."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signals.SIGKILL)
    return process.communicate()[1].decode(errors="replace")


def _too_slow(command: str, limit_seconds: float, stderr: str) -> SlurmError:
    """Slurm's commands try for a minute to read a configuration that is not there, and say so meanwhile."""
    said = fault(command, 0, "", stderr)
    if isinstance(said, BadConfiguration):
        return said
    return TooSlow(
        f"{command} gave no answer within {limit_seconds:g} s, and whether it did what it was to do "
        "is not known: see `scontrol ping` and `sdiag`"
    )


def _check_conf(conf: str | None) -> None:
    """At each call, as the file may come and go; it saves the minute that the command would try."""
    if conf is not None and not (os.path.isfile(conf) and os.access(conf, os.R_OK)):
        raise BadConfiguration(
            f"SLURM_CONF names {conf}, which is no file that can be read here: set it to the path of the "
            "cluster's slurm.conf"
        )


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(max(0.0, at), UTC).strftime(_STAMP)


def _check_words(words: Sequence[str]) -> None:
    """A name may hold quotes, pipes and newlines: without a shell they are letters. A NUL can't be passed."""
    for word in words:
        if "\0" in word or len(word.encode(errors="surrogateescape")) >= _MOST_WORDS_BYTES:
            raise BadInput(f"{word[:60]!r}… can't be passed to {words[0]}: it holds a NUL, or is too long")
