"""Lines of a script that are comments to the shell and words to a scheduler, up to the first command."""

import shlex
from collections.abc import Iterator

from muster.model.errors import BadInput


def directives(text: str, mark: str) -> Iterator[tuple[int, str]]:
    """The lines that begin with a mark, such as ``#SBATCH``: their numbers, and what follows it."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(mark) and line[len(mark) : len(mark) + 1] in ("", " ", "\t"):
            yield number, line[len(mark) :]
        elif line.strip() and not line.lstrip().startswith("#"):
            return  # the first command: what follows is the script's own


def words_of(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        raise BadInput("a quote is opened and not closed") from None
