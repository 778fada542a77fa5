"""The charter's words: a purpose in a sentence, a budget."""

import re

from muster.model.errors import BadInput
from muster.model.units import parse_number

MOST_PURPOSE = 200
_BUDGET = re.compile(r"([0-9.eE+]+)\s*GPU(?:[·\s-]?h|[\s-]?hours?)", re.ASCII | re.IGNORECASE)
_MOST_GPU_HOURS = 1e9


def parse_purpose(text: str) -> str:
    """What it is for: one line that fits beside the job in a table."""
    text = text.strip()
    if not text:
        raise BadInput("a purpose can't be empty; say in one sentence what you will know when this is done")
    if len(text) > MOST_PURPOSE:
        raise BadInput(
            f"a purpose is one sentence of at most {MOST_PURPOSE} letters; this one has {len(text):,}"
        )
    if not text.isprintable():
        raise BadInput("a purpose is one line of printable text")
    return text


def parse_budget(text: str) -> str:
    """``200 GPUh``, in one spelling."""
    match = _BUDGET.fullmatch(text.replace("·", "").strip())
    if match is None:
        raise BadInput(f"{text[:80]!r} is not a budget; write it like '200 GPUh'")
    hours = parse_number(match[1], "budget")
    if not 0 < hours <= _MOST_GPU_HOURS:
        raise BadInput(f"a budget of {match[1]} GPUh is not one; write it like '200 GPUh'")
    return f"{hours:.10g} GPUh"
