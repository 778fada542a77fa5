"""Batch scripts: the ``#SBATCH`` lines above the first command, as sbatch reads them (and ``#MUSTER`` lines).

What Muster decides by itself (partition, qos) or does not do (mail) is passed over with a warning; what is
unknown is refused.
"""

import math
import re
from collections.abc import Iterator

import msgspec

from muster.application.asked import Asked, laid_over
from muster.application.directives import directives, words_of
from muster.application.located import located
from muster.application.names import nearest
from muster.application.options import read_option
from muster.application.own_lines import read_own
from muster.application.tasks import TASK_OPTIONS, Option, Tasks
from muster.application.times import slurm_seconds
from muster.model.errors import BadInput

_SHORT = {
    "J": "job-name",
    "c": "cpus-per-task",
    "n": "ntasks",
    "N": "nodes",
    "G": "gpus",
    "t": "time",
    "a": "array",
    "d": "dependency",
    "b": "begin",
    "H": "hold",
    "o": "output",
    "e": "error",
    "D": "chdir",
    "p": "partition",
    "A": "account",
    "q": "qos",
    "C": "constraint",
}
_SIMPLE = {
    "job-name": "name",
    "account": "team",
    "begin": "begin",
    "array": "array",
    "output": "output",
    "chdir": "cwd",
}
_FLAGS = {"hold", "requeue", "no-requeue", "exclusive"}
_IGNORED = {
    "partition": "Muster places jobs by what they need",
    "qos": "Muster has priorities instead: --priority low, normal or high",
    "error": "errors go to the same log as the output",
    "export": "the job gets the environment of its submission",
    "mail-type": "Muster sends no mail",
    "mail-user": "Muster sends no mail",
    "no-requeue": "a job that loses its node is queued again",
    "exclusive": "a job gets what it asks for, and no more",
}
_OTHERS = {"time", "dependency", "hold", "requeue", "signal", "constraint"}
KNOWN = {*_SIMPLE, *_FLAGS, *TASK_OPTIONS, *_IGNORED, *_OTHERS}
_AFTER = {"afterok": "after_ok", "afterany": "after_any", "afternotok": "after_not_ok"}


class Batch(msgspec.Struct, frozen=True):
    """What a script asks for, and what of it is passed over."""

    asked: Asked
    warnings: tuple[str, ...]


def read_sbatch(text: str, name: str, now: float) -> Batch:
    """What a script's lines ask for. Later ones override, as with sbatch; Muster's own override Slurm's."""
    options = {option.name: option for option in _options(text, name)}
    fields = {}
    for option in options.values():
        with located(name, option.line):
            for key, value in _meant(option):
                field, read = read_option(key, value, now)
                fields[field] = read
    for key, value, line in Tasks(options, name).meant():
        with located(name, line):
            field, read = read_option(key, value, now)
            fields[field] = read
    warnings = [f"--{key} is passed over: {why}" for key, why in _IGNORED.items() if key in options]
    return Batch(laid_over(read_own(text, name, now), Asked(**fields)), tuple(warnings))


def _options(text: str, name: str) -> Iterator[Option]:
    for number, line in directives(text, "#SBATCH"):
        with located(name, number):
            yield from _on_line(line, number)


def _on_line(line: str, number: int) -> Iterator[Option]:
    rest = iter(words_of(line))
    for word in rest:
        name, value = _name_and_value(word)
        if name in _FLAGS:
            yield Option(name, "", number)
        elif value is not None or (value := next(rest, None)) is not None:
            yield Option(name, value, number)
        else:
            raise BadInput(f"--{name} needs a value, like --{name}=…")


def _name_and_value(word: str) -> tuple[str, str | None]:
    """``--name=value``, ``--name``, ``-nvalue`` or ``-n``."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        if name not in KNOWN:
            raise BadInput(f"unknown option --{name[:80]}; {nearest(name, sorted(KNOWN))}")
        return name, value if equals else None
    if not word.startswith("-") or len(word) < 2:
        raise BadInput(f"{word[:80]!r} is not an option; write it like --mem=8G")
    if word[1] not in _SHORT:
        raise BadInput(
            f"unknown option -{word[1]}; known: {', '.join('-' + short for short in sorted(_SHORT))}"
        )
    return _SHORT[word[1]], word[2:].removeprefix("=") or None


def _meant(option: Option) -> Iterator[tuple[str, object]]:
    """The options of Muster that one of Slurm's means."""
    if option.name in _SIMPLE:
        yield _SIMPLE[option.name], option.value
    elif option.name == "time":
        seconds = slurm_seconds(option.value)
        yield "time", "unlimited" if math.isinf(seconds) else f"{seconds}s"
    elif option.name == "hold":
        yield "hold", True
    elif option.name == "signal":
        yield "warn", _signal(option.value)
    elif option.name == "constraint":
        yield "labels", _constraint(option.value)
    elif option.name == "dependency":
        yield from _dependency(option.value).items()


def _signal(value: str) -> str:
    """``B:USR1@120`` → ``USR1@120s``; whom Slurm would send it to makes no difference here."""
    name, at, seconds = value.rpartition(":")[2].partition("@")
    return f"{name}@{seconds}s" if at else name


def _constraint(value: str) -> list[str]:
    if re.search(r"[|\[\]()*]", value):
        raise BadInput(
            f"--constraint={value[:80]!r} is too much to ask; only features joined with & are understood"
        )
    return re.split(r"[&,]", value)


def _dependency(value: str) -> dict[str, list[str]]:
    if "?" in value:
        raise BadInput("dependencies of which one is enough (?) are not understood; join them with commas")
    meant: dict[str, list[str]] = {}
    for part in value.split(","):
        kind, *ids = part.split(":")
        if kind not in _AFTER or not ids:
            raise BadInput(
                f"{part[:80]!r} is not a dependency; write it like afterok:12, afterany:12 or afternotok:12"
            )
        meant.setdefault(_AFTER[kind], []).extend(ids)
    return meant
