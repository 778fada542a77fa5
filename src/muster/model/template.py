"""A line of output with holes in it: ``epoch {step} loss {loss}``, where each hole stands for a number.

People write templates and jobs write lines, and either may mean harm; a regular expression made of the first
and run on the second could take for ever. So both are brought to one form: every number becomes one mark,
every run of blanks one blank. Then a template is found as a text in a text, in time that grows with the line
alone.

``...`` stands for anything. Since each piece between has one length in that form, the first place at which it
is found is never worse than a later one, and nothing is tried twice. A number that is part of the template's
text, as in ``top5 {acc}``, has to be that number. A percent sign belongs to its number, whether the template
has it or not, and means hundredths, as in a condition: ``91.5%`` is 0.915.
"""

import re

from muster.model.errors import BadInput
from muster.model.report import MOST_LETTERS, MOST_NAMES

STEP = "step"
_MOST_TEMPLATE = 500
_MARK = "\0"
_SIGN = r"(?:(?<![\w.)])[-+])?"  # in "3-5" there is none
_HUNDREDTHS = r"(?: ?%(?!\w))"
_NUMBER = re.compile(
    rf"{_SIGN}(?:(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?|(?<![^\W_])(?:nan|inf(?:inity)?)(?![^\W_])){_HUNDREDTHS}?",
    re.IGNORECASE | re.ASCII,
)
_BEHIND = re.compile(rf"^{_HUNDREDTHS}")
_BLANKS = re.compile(r"[\s\0]+")
_HOLE = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_./@-]{{0,{MOST_LETTERS - 1}}}", re.ASCII)
_GAP = "..."
_HINT = "write it as the job prints it, like 'epoch {step} loss {loss}'"

Wanted = tuple[str | None, str]  # a hole's name; or None, and the number that has to stand there


class Template:
    """Finds named numbers in lines."""

    def __init__(self, text: str) -> None:
        if len(text) > _MOST_TEMPLATE:
            raise BadInput(f"a pattern of {len(text):,} letters is too long; {_HINT}")
        if not text.isprintable():
            raise BadInput(f"a pattern is one line of printable text; {_HINT}")
        self.text = text
        self._pieces = [_piece(part) for part in text.split(_GAP) if part.strip()]
        names = [name for _, wanted in self._pieces for name, _ in wanted if name is not None]
        _check_names(names)
        self._rarest = _longest_word(text)

    def numbers(self, line: str) -> dict[str, float] | None:
        """What stands in the holes, by name; None: the line is another."""
        if self._rarest not in line:
            return None
        form, said = _form(line)
        found: dict[str, float] = {}
        at = passed = 0
        for piece, wanted in self._pieces:
            at, passed = _place(form, said, piece, wanted, at, passed)
            if at < 0:
                return None
            for (name, _), number in zip(wanted, said[passed:], strict=False):
                if name is not None:
                    found[name] = _value(number)
            at, passed = at + len(piece), passed + len(wanted)
        return found


def _place(
    form: str, said: list[str], piece: str, wanted: tuple[Wanted, ...], at: int, passed: int
) -> tuple[int, int]:
    """Where a piece is found from here on, and how many numbers come before it."""
    while (found := form.find(piece, at)) >= 0:
        passed += form.count(_MARK, at, found)
        if _are_there(said, wanted, passed):
            return found, passed
        passed += form[found] == _MARK
        at = found + 1
    return -1, passed


def _are_there(said: list[str], wanted: tuple[Wanted, ...], passed: int) -> bool:
    """Whether the numbers of the template's own text stand where they should."""
    for number, (name, text) in enumerate(wanted, passed):
        if name is None and said[number] != text:
            return False
    return True


def _form(line: str) -> tuple[str, list[str]]:
    """The line with a mark for every number, and the numbers."""
    said: list[str] = []

    def marked(match: "re.Match[str]") -> str:
        said.append(match[0])
        return _MARK

    return _NUMBER.sub(marked, _BLANKS.sub(" ", line)), said


def _piece(part: str) -> tuple[str, tuple[Wanted, ...]]:
    """A part of a template in that form, and what each of its marks wants."""
    form, wanted = "", list[Wanted]()
    texts = _HOLE.split(part.strip())
    for i, text in enumerate(texts):
        if i % 2:
            if form.endswith(_MARK):
                raise BadInput(f"pattern: put text between {{{text[:80]}}} and the number before it")
            form += _MARK
            wanted.append((text, ""))
            continue
        if "{" in text or "}" in text:
            raise BadInput(f"pattern: a brace is not closed, or not opened; {_HINT}")
        text = _BEHIND.sub("", text) if i else text
        written, numbers = _form(text)
        if form.endswith(_MARK) and written.startswith(_MARK):
            raise BadInput(f"pattern: {numbers[0]!r} can't be told from the number before it; {_HINT}")
        form += written
        wanted += [(None, number) for number in numbers]
    return form, tuple(wanted)


def _check_names(names: list[str]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise BadInput(
                f"pattern: {name[:80]!r} can't be a metric's name; use letters, digits and _ . / @ -"
            )
    if len(set(names)) < len(names):
        raise BadInput("pattern: a name stands in it twice; give each number a name of its own")
    if not set(names) - {STEP}:
        raise BadInput(f"pattern: there is no number to find besides the step; {_HINT}")
    if len(names) > MOST_NAMES:
        raise BadInput(f"pattern: at most {MOST_NAMES} numbers can be found in a line")


def _longest_word(text: str) -> str:
    """Some text that a line must have, to pass over most others quickly."""
    return max(re.findall(r"[^\W\d_]+", _HOLE.sub(" ", text)), key=len, default="")


def _value(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)  # reckoned as conditions do
