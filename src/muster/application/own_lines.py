"""``#MUSTER`` lines of a script: Muster's own options, as the command line has them.

``#SBATCH`` has no words for what a job is for and how it ends. A script that says so in these lines goes on
being one for sbatch, to which they are comments.
"""

from collections.abc import Iterator
from typing import NamedTuple

from muster.application.asked import Asked
from muster.application.directives import directives, words_of
from muster.application.located import located
from muster.application.names import nearest
from muster.application.options import known_options, read_option
from muster.model.errors import BadInput

_ALSO = {
    "mem": "memory",
    "label": "labels",
    "param": "params",
    "fail": "failure",
    "output-file": "output",
}  # as the command line calls them
_FLAGS = {"hold", "cpu_cap", "right_size"}
_LISTS = {
    "success",
    "failure",
    "progress",
    "gpu_model",
    "labels",
    "params",
    "after_ok",
    "after_any",
    "after_not_ok",
}


class Option(NamedTuple):
    key: str
    value: str | bool
    line: int


def read_own(text: str, name: str, now: float) -> Asked:
    """What they ask for. Those that may be repeated add up; of the others the last one counts."""
    fields = {}
    listed: dict[str, list[str | bool]] = {}
    line = 0
    for key, value, line in _options(text, name):
        with located(name, line):
            field, read = read_option(key, value, now)
        fields[field] = read
        if key in _LISTS:
            listed.setdefault(key, []).append(value)
    with located(name, line):  # what each of them says is right; together they may be too many
        for key, several in listed.items():
            field, read = read_option(key, several, now)
            fields[field] = read
    return Asked(**fields)


def _options(text: str, name: str) -> Iterator[Option]:
    for number, line in directives(text, "#MUSTER"):
        with located(name, number):
            yield from _on_line(line, number)


def _on_line(line: str, number: int) -> Iterator[Option]:
    rest = iter(words_of(line))
    for word in rest:
        written, equals, attached = word.partition("=")
        key = _key(written)
        if key in _FLAGS and not equals:
            yield Option(key, True, number)
            continue
        value = attached if equals else next(rest, None)
        if value is None:
            raise BadInput(f"{written} needs a value, like {written} …")
        yield Option(key, value, number)


def _key(written: str) -> str:
    if not written.startswith("--") or len(written) < 3:
        raise BadInput(f'{written[:80]!r} is not an option; write it like --for "what you will know"')
    name = written[2:]
    known = {key.replace("_", "-"): key for key in known_options()} | _ALSO
    if name not in known:
        raise BadInput(f"unknown option --{name[:80]}; {nearest(name, sorted(known))}")
    return known[name]
