"""The digest and the single message, as texts: plain, Markdown, and as Slack reads it.

Names and sentences come from anywhere. Whatever the form, they are made one line without control characters,
and what the form would take for markup is escaped.
"""

import re
from collections.abc import Callable, Sequence

import msgspec

MOST_CHARACTERS = 600  # of a sentence or a command
MOST_LINES = 40  # of each kind; the rest is in muster digest
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")

Escape = Callable[[str], str]


class Line(msgspec.Struct, frozen=True):
    """What is said, and what can be done about it."""

    number: int
    sentence: str
    action: str = ""


class Digest(msgspec.Struct, frozen=True, kw_only=True):
    """What needs an answer, and what has happened."""

    to: str
    questions: tuple[Line, ...] = ()
    news: tuple[Line, ...] = ()
    since: str = "yesterday"
    summary: str = ""  # of what has happened
    left_out: int = 0

    @property
    def headline(self) -> str:
        count = len(self.questions)
        if not count:
            return "Nothing needs an answer from you."
        return f"Today needs {'one answer' if count == 1 else f'{count} answers'} from you."


class Single(msgspec.Struct, frozen=True):
    """One message by itself."""

    to: str
    line: Line
    is_last: bool = False  # of today

    @property
    def headline(self) -> str:
        return clean(self.line.sentence)


LAST = "This is the last interruption today; what else comes is in your digest."


class _Form(msgspec.Struct, frozen=True):
    text: Escape
    code: Escape
    strong: str  # before and after
    item: str  # before a question; its number goes in
    below: str  # before a question's command
    bullet: str  # before news


def clean(text: str) -> str:
    """Text from anywhere as one line of what can be printed, and not too long."""
    joined = " ".join(text.split())[: MOST_CHARACTERS + 1]
    if len(joined) > MOST_CHARACTERS:
        joined = joined[: MOST_CHARACTERS - 1] + "…"
    return "".join(c if c.isprintable() else _UNKNOWN for c in joined)


def _marked_down(text: str) -> str:
    return _MARKUP.sub(r"\\\1", clean(text))


def _slacked(text: str) -> str:
    """The three characters by which Slack begins a mention, a link or a command."""
    return clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _coded(escape: Escape) -> Escape:
    return lambda text: f"`{escape(text.replace('`', chr(39)))}`"


PLAIN = _Form(clean, clean, "", "{:>3}  ", "     ", "  ")
MARKDOWN = _Form(_marked_down, _coded(clean), "**", "{}. ", "   ", "- ")
SLACK = _Form(_slacked, _coded(_slacked), "*", "{}. ", "     ", "• ")


def written(what: Digest | Single, form: _Form = PLAIN) -> str:
    """All of it, in this form."""
    return _digest(what, form) if isinstance(what, Digest) else _single(what, form)


def _single(single: Single, form: _Form) -> str:
    line, strong = single.line, form.strong
    lines = [f"{strong}{form.text(line.sentence)}{strong}"]
    if line.action:
        lines.append(f"{form.below}{form.code(line.action)}")
    return "\n".join([*lines, LAST] if single.is_last else lines)


def _digest(digest: Digest, form: _Form) -> str:
    strong = form.strong
    lines = [f"{strong}{digest.headline}{strong}", *_questions(digest.questions, form)]
    if digest.summary:
        lines.append(f"Since {digest.since}: {form.text(digest.summary)}.")
    elif digest.news:
        lines.append(f"Since {digest.since}:")
    lines += [_news(line, form) for line in digest.news[:MOST_LINES]]
    more = sum(max(0, len(some) - MOST_LINES) for some in (digest.questions, digest.news))
    if more:
        lines.append(f"{more} more: muster digest")
    if digest.left_out:
        lines.append(f"{digest.left_out} older messages found no room and are gone.")
    return "\n".join(lines)


def _questions(questions: Sequence[Line], form: _Form) -> list[str]:
    lines = []
    for line in questions[:MOST_LINES]:
        lines.append(form.item.format(line.number) + form.text(line.sentence))
        if line.action:
            lines.append(form.below + form.code(line.action))
    return lines


def _news(line: Line, form: _Form) -> str:
    said = f"{form.bullet}{form.text(line.sentence)}"
    return f"{said}  {form.code(line.action)}" if line.action else said
