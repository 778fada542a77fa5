"""Names that people give: printable, short, and never a path."""

import re

from muster.model.errors import BadInput

MOST_LETTERS = 128
_JOB_ID = re.compile(r"[A-Za-z0-9_\[\]-]{1,64}", re.ASCII)


def parse_name(text: str) -> str:
    """A name that is safe in a table, in a file's name and in a log line."""
    text = text.strip()
    if not text:
        raise BadInput("a name can't be empty; leave it out or write one")
    if len(text) > MOST_LETTERS:
        raise BadInput(f"a name of {len(text):,} letters is too long; {MOST_LETTERS} are the most")
    if not text.isprintable():
        raise BadInput(f"{text!r} has characters that can't be printed; use letters, digits, spaces and -_.:")
    if "/" in text or "\\" in text or text in (".", ".."):
        raise BadInput(f"{text!r} looks like a path; a name has no slashes")
    return text


def parse_job_id(text: str) -> str:
    """An id as ``muster ps`` shows it: ``12``, ``12_3``."""
    text = text.strip()
    if not _JOB_ID.fullmatch(text):
        raise BadInput(f"{text[:80]!r} is not a job's id; 'muster ps' shows them, such as 12 or 12_3")
    return text


def nearest(given: str, known: list[str]) -> str:
    """The end of a sentence about an unknown word: the known one that it resembles, or all of them."""
    import difflib  # noqa: PLC0415 - only a mistake pays for it

    near = difflib.get_close_matches(given, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"
