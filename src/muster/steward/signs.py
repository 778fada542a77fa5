"""What one line of a log says about why its program ended.

A log is hostile text. It may print any message in a harmless context: in its help, in a warning, in a
sentence that says it did not happen. So words count only in a line that has the shape of an error: an
exception as Python and its kin print it, a line that calls itself an error, or one of few shapes that shells
and launchers have. All is done by comparing, and by patterns without nested repetition, on lines of bounded
length: a line costs what its length is, whatever is in it.
"""

import re

from muster.steward import words
from muster.steward.faults import HARDWARE_XIDS
from muster.steward.words import Sign, Weight

MOST_LETTERS = 2000  # of a line that are looked at

_CONTROL = re.compile(r"\x1b\[[0-9;?]{0,16}[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
# What launchers and loggers put before a line: ranks, times, process ids.
_PREFIX = re.compile(
    r"\[(?:rank|default)?[0-9]{1,6}\]:?\s*"
    r"|\[[0-9]{1,6},[0-9]{1,6}\]<std(?:err|out)>:\s*"
    r"|[0-9]{1,6}:\s"
    r"|\([^()]{1,60} pid=[0-9]{1,10}[^()]{0,60}\)\s"
    r"|\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}[0-9.,Z+-]{0,16}\]?:?[\s-]{0,8}"
    r"|\[?[0-9]{2}:[0-9]{2}:[0-9]{2}[0-9.,]{0,8}\]?:?[\s-]{0,8}"
    r"|\s{0,8}\|\s"
)
_MOST_PREFIXES = 4
_QUIET, _LOUD = "quiet", "loud"
_LEVEL = re.compile(
    r"\[?(?:(DEBUG|INFO|NOTICE|WARN|WARNING)|(ERROR|CRITICAL|FATAL|SEVERE))\]?[\s:|]", re.IGNORECASE
)
_GLOG = re.compile(r"\[?(?:([DIW])|([EF]))(?:[0-9]{3,4} [0-9:. ]{8,40}| )[\w./-]{1,80}:[0-9]{1,6}\]\s")
_XID = re.compile(r"NVRM: Xid \(PCI:[0-9a-fA-F:.]{1,20}\): ([0-9]{1,3})\b")
_SHELL_DEATH = re.compile(r"[^:]{1,120}: line [0-9]{1,7}: {1,4}[0-9]{1,10} ([A-Z][a-z]{2,20})\b")
_LOSS = re.compile(r"loss[\"']?\s{0,3}[:=]?\s{0,3}(?:tensor\()?([-+]?(?:nan\b|inf\b|[0-9.]{1,20}))", re.I)

_STARTS: tuple[tuple[str, Sign], ...] = (
    ("muster: can't execute", words.NOT_EXECUTED),
    ("muster: can't enter the folder", words.FILE),
    ("Exception ignored in", words.IGNORED),
    ("Segmentation fault", words.SEGMENTATION),
    ("Illegal instruction", words.ILLEGAL),
    ("Bus error", words.BUS),
    ("traceback : Signal 9 (SIGKILL) received", words.KILLED),  # torchrun's word on one of its ranks
    ("Fatal Python error", words.LOUD),
    ("panic: ", words.LOUD),
    ("Aborted", words.LOUD),
    ("srun: error:", words.ECHO),
    ("mpirun noticed that", words.ECHO),
    ("make: ***", words.ECHO),
)
# How a line ends that a shell or its tools have printed.
_ENDS: tuple[tuple[str, Sign], ...] = (
    (": command not found", words.NOT_EXECUTED),
    (": Exec format error", words.NOT_EXECUTED),
    (": bad interpreter: No such file or directory", words.NOT_EXECUTED),
    (": cannot open shared object file: No such file or directory", words.MODULE),
    (": No such file or directory", words.FILE),
    (": Cannot allocate memory", words.HOST_MEMORY),
    (": No space left on device", words.NO_ROOM),
)
_DEATHS = {
    "Killed": words.KILLED,
    "Segmentation": words.SEGMENTATION,
    "Illegal": words.ILLEGAL,
    "Bus": words.BUS,
}
# A line that begins so is an error, and its words count.
_LOUD_STARTS = (
    "error",
    "fatal",
    "cuda error",
    "cuda failed",
    "cuda runtime error",
    "cudaerror",
    "what():",
    "terminate called",
    "slurmstepd: error",
    "memory cgroup out of memory",
    "out of memory: killed",
    "exception in thread",
    "unable to determine the device handle",
)
_WAS_HANDLED = ("retrying", "will retry", "recovered", "skipping", "ignoring", "falling back", "handled")
_STOPS = ("stopping", "aborting", "exiting", "terminating")


def clean(line: str, most: int = MOST_LETTERS) -> str:
    """Without what moves a cursor or can't be printed."""
    return _CONTROL.sub("", line[: 2 * most])[:most]


def sign_of(line: str) -> tuple[Sign, str] | None:
    """What a line says, and which piece of it, None if nothing.

    Of a line that was written over, as progress bars are, what came last counts first.
    """
    for piece in filter(None, reversed(line.split("\r"))):
        text, level = _bare(clean(piece))
        if text and level != _QUIET:
            found = _by_shape(text.strip()) or (None if text[0].isspace() else words.of_exception(text))
            found = found or _by_loudness(text.strip(), level) or _by_loss(text)
            if found is not None:
                return found, piece
    return None


def _bare(text: str) -> tuple[str, str | None]:
    """Without prefixes, and how loud the line is said to be."""
    level = _QUIET if " NCCL INFO " in text[:200] else None
    for _ in range(_MOST_PREFIXES):
        match = _GLOG.match(text) or _LEVEL.match(text)
        if match is not None:
            level = _QUIET if match[1] else _LOUD
        else:
            match = _PREFIX.match(text)
        if match is None:
            break
        text = text[match.end() :]
    return text, level


def _by_shape(text: str) -> Sign | None:
    for start, sign in _STARTS:
        if text.startswith(start):
            return sign
    for end, sign in _ENDS:
        if text.endswith(end):
            return sign._replace(weight=Weight.WEAK)
    if text == "Killed":
        return words.KILLED
    if (death := _SHELL_DEATH.match(text)) is not None and death[1] in _DEATHS:
        return _DEATHS[death[1]]
    if (xid := _XID.match(text)) is not None:
        return words.GPU_FAULT if int(xid[1]) in HARDWARE_XIDS else None
    return _by_stopping(text[:300].lower())


def _by_stopping(low: str) -> Sign | None:
    """A program that stops by itself when its loss is not a number."""
    stops = "loss" in low and any(word in low for word in _STOPS)
    return words.NAN if stops and words.has_nan(low) else None


def _by_loudness(text: str, level: str | None) -> Sign | None:
    low = text.lower()
    if level != _LOUD and not low.startswith(_LOUD_STARTS):
        return None
    if any(word in low for word in _WAS_HANDLED):
        return None
    return words.of_message(text) or words.LOUD


def _by_loss(text: str) -> Sign | None:
    """Whether the loss that is printed is a number."""
    match = _LOSS.search(text)
    if match is None:
        return None
    is_number = match[1].lower().lstrip("+-") not in ("nan", "inf")
    return words.NAN._replace(weight=Weight.FINE if is_number else Weight.HINT)
