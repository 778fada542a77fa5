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
    """A sentence beside the answer, on stderr; below it what it points at, if it does."""
    said = safe_lines(sentence) if _points(sentence) else one_line(sentence)
    print(f"muster: {said}", file=sys.stderr)


def _points(text: str) -> bool:
    """Whether it is a sentence, a line of what was written, and a caret under the letter that is wrong."""
    lines = text.splitlines()
    return len(lines) == 3 and lines[1].startswith("  ") and lines[2].strip() == "^"
