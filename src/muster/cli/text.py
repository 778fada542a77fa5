"""Words to the person at the terminal: safe to print, and where they belong."""

import sys


def one_line(text: str) -> str:
    """Text from anywhere, safe to print: no control characters, no line breaks."""
    joined = " ".join(text.split())
    if joined.isprintable():
        return joined
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in joined)


def safe_lines(text: str) -> str:
    """Text of several lines, each of them safe to print; blanks that align it are kept."""
    lines = text.rstrip().splitlines()
    return "\n".join(
        "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line) for line in lines
    )


def remark(sentence: str) -> None:
    """A sentence beside the answer, on stderr."""
    print(f"muster: {one_line(sentence)}", file=sys.stderr)
