"""What somebody answered the last time, by the name of the job: theirs alone, small, and never in the way.

A file that is gone, broken or not to be written costs nothing but the offer.
"""

import json
import os

from muster.home import own_state

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

_FILE = "answers.json"
_MOST_NAMES = 100
_MOST_LETTERS = 1000  # of one answer
_MOST_BYTES = 1 << 20


def last_answers(name: str) -> dict[str, str]:
    """By question; empty if nothing is remembered."""
    return _read().get(name, {})


def keep(name: str, answers: dict[str, str]) -> None:
    """The latest stands last, and the oldest makes room."""
    known = _read()
    known.pop(name, None)
    known[name] = {question: answer[:_MOST_LETTERS] for question, answer in answers.items()}
    kept = dict(list(known.items())[-_MOST_NAMES:])
    try:
        _write(json.dumps(kept, ensure_ascii=False, indent=1).encode())
    except OSError:
        return


def _read() -> dict[str, dict[str, str]]:
    try:
        with open(os.path.join(own_state(), _FILE), "rb") as file:
            found = json.loads(file.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: _texts(answers) for name, answers in found.items() if isinstance(answers, dict)}


def _texts(answers: "dict[str, Any]") -> dict[str, str]:
    return {question: text for question, text in answers.items() if isinstance(text, str)}


def _write(text: bytes) -> None:
    """Whole or not at all, and readable by nobody else."""
    folder = own_state()
    os.makedirs(folder, mode=0o700, exist_ok=True)
    fresh = os.path.join(folder, f".{_FILE}.{os.getpid()}")
    file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(file, text)
    finally:
        os.close(file)
    os.replace(fresh, os.path.join(folder, _FILE))
