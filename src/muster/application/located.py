"""Where something was written, for the sentence about what is wrong with it."""

from collections.abc import Iterator
from contextlib import contextmanager

from muster.model.errors import BadInput


@contextmanager
def located(name: str, line: int | None) -> Iterator[None]:
    """Names the file, and the line if it is known, in every refusal from within."""
    try:
        yield
    except BadInput as error:
        where = f"{shown(name)}, line {line}" if line else shown(name)
        raise BadInput(f"{where}: {error}") from None


def shown(name: str) -> str:
    """A file's name, fit to be printed."""
    return "".join(c if c.isprintable() else "?" for c in name[-120:]) or "the file"
