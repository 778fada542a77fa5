"""``muster completion``: the Tab key knows verbs, options, jobs and nodes.

The shells' scripts only ask: ``muster completion words`` is told the line so far and prints what may follow.
"""

import importlib
from argparse import Namespace

from muster.cli.main import VERBS
from muster.cli.output import structured
from muster.cli.parse import Parser, Usage
from muster.client import Client
from muster.model.errors import MusterError

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_ABOUT = "Print a script that teaches your shell to complete verbs, options, jobs and nodes."
_EXAMPLES = """
eval "$(muster completion bash)"                                      # in ~/.bashrc
eval "$(muster completion zsh)"                                       # in ~/.zshrc
muster completion fish > ~/.config/fish/completions/muster.fish
"""
_ASK_SECONDS = 2.0
SCRIPTS = {
    "bash": """\
_muster() {
    local IFS=$'\\n'
    COMPREPLY=($(muster completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _muster muster""",
    "zsh": """\
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
_muster() {
    local -a found
    found=(${(f)"$(muster completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( $#found )); then compadd -- $found; else _files; fi
}
compdef _muster muster""",
    "fish": """\
function __muster_words
    set -l words (commandline -opc) (commandline -ct)
    set -l found (muster completion words -- $words[2..] 2>/dev/null)
    if test -n "$found[1]"
        printf '%s\\n' $found
    else
        __fish_complete_path $words[-1]
    end
end
complete -c muster -f -a '(__muster_words)'""",
}


def define(parser: Parser) -> None:
    parser.describe(_ABOUT, _EXAMPLES)
    parser.takes_command = True  # a line that is completed has options of its own
    parser.usage = f"{parser.prog} bash|zsh|fish"


def run(given: Namespace) -> int:
    shell, *line = given.words or [""]
    if shell == "words":
        print("\n".join(candidates(line[1:])))
        return 0
    if shell not in SCRIPTS or line:
        raise Usage("name your shell: bash, zsh or fish (see 'muster completion --help')")
    print(SCRIPTS[shell])
    return 0


def candidates(line: list[str]) -> list[str]:
    """What may stand where the last word of the line is being typed."""
    *before, typed = line or [""]
    if not before:
        return _starting(typed, list(VERBS))
    if before[0] not in VERBS or "--" in before:
        return []
    parser = Parser(before[0])
    importlib.import_module(VERBS[before[0]]).define(parser)
    if typed.startswith("-"):
        return _starting(typed, list(parser.takes_value))
    awaiting = parser.takes_value.get(before[-1], False) and len(before) > 1
    if awaiting:
        return _starting(typed, _values(parser, before[-1]))
    return _starting(typed, _named(parser, is_first=len(before) == 1))


def _named(parser: Parser, *, is_first: bool) -> list[str]:
    """What a verb may be told to act on, and what to do with it."""
    words = list(parser.first_words) if is_first else []
    words += _jobs() if parser.takes_jobs else []
    return words + (_nodes() if parser.takes_nodes else [])


def _values(parser: Parser, option: str) -> list[str]:
    action = next(one for one in parser.options if option in one.option_strings)
    if action.metavar == "ID":
        return _jobs()
    return [str(choice) for choice in action.choices or ()]


def _jobs() -> list[str]:
    """Those that run or wait."""
    return _asked(Client.jobs)


def _nodes() -> list[str]:
    return _asked(Client.nodes)


def _asked(ask: "Callable[[Client], list[dict[str, Any]]]") -> list[str]:
    """The names of what the server lists; nothing if it does not answer quickly."""
    try:
        with Client(timeout_seconds=_ASK_SECONDS) as client:
            return (structured(ask(client), "name") or "").split()
    except MusterError:
        return []


def _starting(typed: str, words: list[str]) -> list[str]:
    return sorted(word for word in words if word.startswith(typed))
