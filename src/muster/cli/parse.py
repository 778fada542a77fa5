"""Command lines: argparse, with one sentence for each mistake, a guess at what was meant, no abbreviations.

A verb's module has ``define(parser)``, which describes it and adds its arguments, and ``run(given)``, which
returns the exit code.
"""

import argparse
import os

from muster.model.errors import BadInput

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, NoReturn

JOB, NODE = "ID", "NODE"  # how arguments that name a job or a node are called, for people and for completion
_LONGEST_ID = 4000  # of every other member of an array, say


class Usage(BadInput):
    """The command line itself is wrong; its help tells how it would be right."""


class Parser(argparse.ArgumentParser):
    """One verb's command line."""

    def __init__(self, verb: str) -> None:
        super().__init__(
            prog=f"muster {verb}",
            allow_abbrev=False,
            add_help=False,
            formatter_class=_Formatter,
        )
        self.verb = verb
        self.options: list[argparse.Action] = []
        self.takes_value: dict[str, bool] = {}  # of each option string
        self.takes_command = False  # the first word that is no option, and all that follow, are the job's
        self.takes_jobs = False
        self.takes_nodes = False
        self.first_words: tuple[str, ...] = ()  # that stand before what is named, and say what to do with it
        self.add_argument("-h", "--help", action="help", help="show this and exit")

    def describe(self, about: str, examples: str) -> None:
        self.description = about
        self.epilog = "Examples:\n" + "\n".join(f"  {line}" for line in examples.strip().splitlines())

    def add_argument(self, *names: "Any", **told: "Any") -> argparse.Action:
        action = super().add_argument(*names, **told)
        self.options.append(action)
        if not action.option_strings:
            self.takes_jobs |= action.metavar == JOB
            self.takes_nodes |= action.metavar == NODE
        for name in action.option_strings:
            self.takes_value[name] = action.nargs != 0
        return action

    def read(self, arguments: "Sequence[str]") -> argparse.Namespace:
        """The arguments, or ``Usage``. With ``takes_command`` the job's own words are in ``given.words``."""
        own, words, after_dashes = self._divided(arguments)
        given = self.parse_args(own if self.takes_command else [*own, *words])
        given.verb = self.verb
        if self.takes_command:
            given.words, given.after_dashes = words, after_dashes
        return given

    def _divided(self, arguments: "Sequence[str]") -> tuple[list[str], list[str], bool]:
        """This verb's own arguments, the words that are not, and whether ``--`` stands between."""
        rest = list(arguments)
        own: list[str] = []
        while rest:
            word = rest.pop(0)
            if word == "--":
                return own, (rest if self.takes_command else ["--", *rest]), True
            if not word.startswith("-") or word == "-":
                if self.takes_command:
                    return own, [word, *rest], False
                own.append(word)
                continue
            own.append(word)
            if self._awaits_value(word) and rest:
                own[-1:] = _joined(word, rest.pop(0))
        return own, [], False

    def _awaits_value(self, word: str) -> bool:
        """Whether the next word belongs to this option. An unknown option ends it all, with a guess."""
        name = word.partition("=")[0]
        if word.startswith("--"):
            if name not in self.takes_value:
                self.error(f"unknown option {name!r}; {nearest(name, self._long())}")
            return self.takes_value[name] and "=" not in word
        for at, letter in enumerate(word[1:], 1):  # -af: several flags, the last may take a value
            if f"-{letter}" not in self.takes_value:
                self.error(f"unknown option '-{letter}'; {nearest('--' + word[1:], self._long())}")
            if self.takes_value[f"-{letter}"]:
                return at == len(word) - 1
        return False

    def _long(self) -> list[str]:
        return [name for name in self.takes_value if name.startswith("--")]

    def error(self, message: str) -> "NoReturn":
        said = message.removeprefix("argument ").replace("the following arguments are required", "missing")
        raise Usage(f"{said} (see 'muster {self.verb} --help')")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal. argparse makes one for each argument, and by itself would import shutil."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(_columns(), 110))


def _columns() -> int:
    try:
        return os.get_terminal_size(1).columns
    except OSError:
        return 100


def _joined(option: str, value: str) -> list[str]:
    """A value that looks like an option still is one if it stands where a value must."""
    if not value.startswith("-"):
        return [option, value]
    return [f"{option}={value}"] if option.startswith("--") else [f"{option}{value}"]


def nearest(given: str, known: "Iterable[str]") -> str:
    """The end of a sentence about an unknown word: what was probably meant, or all there is."""
    import difflib

    names = sorted(known)
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"


def whole_number(least: int) -> "Any":
    """A type of argument: a whole number, and not below that."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number, {least} or more")
        return int(text)

    return read


def job_id(text: str) -> str:
    """A type of argument: an id that could be one, or that names several members."""
    if not 0 < len(text) <= _LONGEST_ID or not all(
        c.isascii() and (c.isalnum() or c in "_[]-,") for c in text
    ):
        raise argparse.ArgumentTypeError(
            f"{text[:80]!r} is not a job's id; 'muster ps' shows them, such as 12"
        )
    return text


def add_jobs(parser: Parser, *, optional: bool = False) -> None:
    many = "*" if optional else "+"
    parser.add_argument(
        "jobs",
        metavar=JOB,
        nargs=many,
        type=job_id,
        help="a job, a member (12_3), some (12_[1-3,7]), an array",
    )


def add_job(parser: Parser) -> None:
    parser.add_argument("job", metavar=JOB, type=job_id, help="the job, as 'muster ps' shows it")
