"""Slurm's commands, called: each with a time limit, in the C locale and in UTC, never through a shell.

A pass asks once for each kind of thing (jobs, nodes, partitions, reservations, attempts, use), whatever
their number. Nothing of the caller's ``SLURM_…``, ``SQUEUE_…`` and the like gets through: they change
what is answered. Calls block: whoever must not wait for a slow controller (about nine seconds, if it is
dead) calls from a thread.
"""

import contextlib
import math
import os
import pwd
import re
import signal as signals
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TypeVar

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
from muster.model.units import MINUTE

LIMIT_SECONDS = 60.0
_MOST_IDS = 1000  # in one command line
_MOST_WORDS_BYTES = 128 * 1024  # of one argument: what Linux takes
_ID = re.compile(r"[0-9]{1,10}(?:_[0-9]{1,10}|\+[0-9]{1,10})?", re.ASCII)
_NODE = re.compile(r"[\w.-]{1,100}")
_LEVELS = ("Operator", "Administrator")
_VERBS = frozenset(("hold", "uhold", "release", "suspend", "resume", "requeue", "requeuehold"))
_SIGNAL = re.compile(r"[A-Z0-9]{1,10}", re.ASCII)
_OURS = ("HOME", "USER", "LOGNAME", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR")
PASSED_ON = (*_OURS, "LC_ALL", "TZ")
"""What commands find in their environment beside PATH and SLURM_CONF."""
Word = TypeVar("Word")
_STAMP = "%Y-%m-%dT%H:%M:%S"


class Done(msgspec.Struct, frozen=True):
    """What a command left."""

    code: int
    stdout: bytes
    stderr: str


class Slurm:
    """A cluster, as its commands on this machine show it. Raises ``SlurmError`` with one sentence."""

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
        self.read_only = read_only
        self._kept_open = kept_open
        self._limit_seconds = limit_seconds
        self._environment = _environment(conf or os.environ.get("SLURM_CONF"))
        self._version: Version | None = None

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
        return jobs.read_jobs(done.stdout, self.notices, stderr=done.stderr)

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
        listed = ",".join(map(str, _checked(ids)))
        if not listed:
            return ()
        columns = "--format=JobID,NTasks,MaxRSS,TRESUsageInTot"
        return texts.read_use(self._text("sstat", "--allsteps", "--parsable2", f"--jobs={listed}", columns))

    def topology(self) -> str:
        """What is near to what, as ``scontrol show topology`` tells it; empty where nobody has said."""
        try:
            return self._text("scontrol", "show", "topology")
        except Refused:  # a cluster without one
            return ""

    def script(self, job: int | str) -> str | None:
        """The batch script of a job: of one's own, or of all as an operator. None: none, or not for us."""
        (listed,) = _checked((job,))
        try:
            return self._text("scontrol", "write", "batch_script", listed, "-")
        except (Denied, Refused, UnknownJob):
            return None

    def is_operator(self) -> bool:
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
            return False
        return level.strip() in _LEVELS

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
        minutes = "UNLIMITED" if seconds is None else str(max(1, math.ceil(seconds / MINUTE)))
        self._ordered("scontrol", "update", f"JobId={_checked([job])[0]}", f"TimeLimit={minutes}")

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
        listed = _checked(ids)
        if signal is not None and _SIGNAL.fullmatch(signal) is None:
            raise BadInput(f"{signal!r} is no signal; write it like USR1")
        if listed:
            extra = () if signal is None else (f"--signal={signal}", *(() if steps_only else ("--full",)))
            self._ordered("scancel", *extra, *listed)

    def control(self, verb: str, ids: Iterable[int | str]) -> None:
        """``hold``, ``release``, ``suspend``, ``resume``, ``requeue`` and the like."""
        if verb not in _VERBS:
            raise BadInput(f"{verb!r} is nothing to do with a job; known: {', '.join(sorted(_VERBS))}")
        listed = _checked(ids)
        if listed:
            self._ordered("scontrol", verb, ",".join(listed))

    def drain(self, node: str, because: str) -> None:
        """Nothing new starts there. For operators."""
        self._ordered("scontrol", "update", f"NodeName={_node(node)}", "State=DRAIN", f"Reason={because}")

    def undrain(self, node: str) -> None:
        self._ordered("scontrol", "update", f"NodeName={_node(node)}", "State=RESUME")

    # --- Calling ---

    def _text(self, *words: str) -> str:
        return self._asked(*words).stdout.decode(errors="replace")

    def _ordered(self, *words: str, given: bytes = b"") -> Done:
        if self.read_only:
            raise Denied(
                f"{words[0]} is not called: this Muster only observes Slurm, and changes nothing there"
            )
        return self._asked(*words, given=given)

    def _asked(self, *words: str, given: bytes = b"") -> Done:
        done = self._run(words, given)
        if done.code:
            raise fault(words[0], done.code, done.stdout.decode(errors="replace"), done.stderr)
        return done

    def _run(self, words: Sequence[str], given: bytes) -> Done:
        _check_words(words)
        _check_conf(self._environment.get("SLURM_CONF"))
        with self._started(words) as process:
            try:
                stdout, stderr = process.communicate(given, timeout=self._limit_seconds)
            except subprocess.TimeoutExpired:
                raise _too_slow(words[0], self._limit_seconds, _end(process)) from None
        if process.returncode < 0:
            raise BadAnswer(words[0], f"it was killed by signal {-process.returncode}")
        return Done(process.returncode, stdout, stderr.decode(errors="replace"))

    def _started(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(
                words,
                stdin=pipe,
                stdout=pipe,
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


def batches(words: Iterable[Word]) -> Iterator[list[Word]]:
    """As many as one command takes."""
    rest = iter(words)
    while some := list(islice(rest, _MOST_IDS)):
        yield some


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


def _environment(conf: str | None) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", *_OURS) if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8", "TZ": "UTC", **({"SLURM_CONF": conf} if conf else {})}


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(max(0.0, at), UTC).strftime(_STAMP)


def _checked(ids: Iterable[int | str]) -> list[str]:
    listed = [str(one) for one in ids]
    for one in listed:
        if _ID.fullmatch(one) is None:
            raise BadInput(f"{one!r} is no job of Slurm; write it like 12, 12_3 or 12+1")
    if len(listed) > _MOST_IDS:
        raise BadInput(f"{len(listed):,} jobs are too many for one command; {_MOST_IDS:,} is the most")
    return listed


def _node(name: str) -> str:
    if _NODE.fullmatch(name) is None:
        raise BadInput(f"{name[:60]!r} is no name of a node")
    return name


def _check_words(words: Sequence[str]) -> None:
    """A name may hold quotes, pipes and newlines: without a shell they are letters. A NUL can't be passed."""
    for word in words:
        if "\0" in word or len(word.encode(errors="surrogateescape")) >= _MOST_WORDS_BYTES:
            raise BadInput(f"{word[:60]!r}… can't be passed to {words[0]}: it holds a NUL, or is too long")
