"""The charter's words: a purpose in a sentence, a budget."""

from muster.model.errors import BadInput
from muster.steward import budget

MOST_PURPOSE = 200


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
    """``200 GPUh``, ``500 CPUh`` or ``300 EUR``, in one spelling."""
    return str(budget.parse_budget(text))
