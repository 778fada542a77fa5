"""Asks who is at the terminal for what a job lacks to pass muster: what it is for, and how it ends.

The server says what to ask and looks at each answer; here is only the conversation. Plain lines on stderr and
stdin: stdout is for the answer of the command, and a line editor would cost more to load than all the rest.
"""

import sys

from muster.cli.remembered import keep, last_answers
from muster.cli.text import one_line, safe_lines
from muster.model.errors import BadInput

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from typing import Any

    from muster.client import Client

_NONE = "-"  # no answer, where Enter would take the last one
_WORDS = {
    "for": "No purpose given. In one sentence, what will you know when this is done?",
    "success": "How will you know it worked?",
    "give_up": "And when to give up?",
}
_EXAMPLES = {
    "for": "",
    "success": "e.g. val_acc >= 0.92",
    "give_up": "e.g. val_acc < 0.5 after 2h, or 8h, or 200 GPUh",
}
_NEEDED = {
    "for": "Here nothing starts without a purpose; one sentence is enough.",
    "success": "",
    "give_up": "Here nothing starts without an end; a time like 8h is enough.",
}


class Questions:
    """A conversation about one submission. ``body`` is what will be sent; the answers become its options."""

    def __init__(self, client: "Client", body: "dict[str, Any]") -> None:
        self._client = client
        self._body = {key: value for key, value in body.items() if key != "environment"}
        self._options: dict[str, Any] = body["options"]
        self._look: dict[str, Any] = {}
        self._last: dict[str, str] = {}
        self._answers: dict[str, str] = {}

    def ask(self) -> None:
        """Nothing, if nothing is missing. What was wrong on the command line is said before any question."""
        self._look = self._looked({})
        for option, problem in self._look["problems"].items():
            raise BadInput(f"{option}: {problem}")
        if not self._look["asks"]:
            return
        self._last = last_answers(self._look["name"])
        for question in self._look["asks"]:
            answer = self._asked(question)
            if answer is None:
                return
            if not answer and question == "for":
                return  # who does not say what it is for won't say how it ends

    def keep(self) -> None:
        """Once it was submitted: to be offered the next time."""
        if self._answers:
            keep(self._look["name"], self._answers)

    def _asked(self, question: str) -> str | None:
        """The answer, once there is nothing wrong with it; empty: skipped; None: none will come."""
        offered = self._last.get(question, "")
        while True:
            answer = _read(self._words(question, offered), offered)
            if answer is None:
                return None
            answer = "" if answer == _NONE else answer or offered
            problem = self._problem(question, answer)
            if not problem:
                return answer
            print(safe_lines(problem), file=sys.stderr)  # it may point at a letter
            offered = ""

    def _problem(self, question: str, answer: str) -> str | None:
        """What is wrong with an answer; what is right becomes an option."""
        if not answer:
            return self._without(question)
        given = {"give_up": answer} if question == "give_up" else {"options": {question: answer}}
        look = self._looked(given)
        if question in look["problems"]:
            return str(look["problems"][question])
        self._look = look
        self._options |= look["meant"] if question == "give_up" else {question: answer}
        self._answers[question] = answer
        return None

    def _without(self, question: str) -> str | None:
        """Whether it can be skipped. The time limit is an end, if somebody says so."""
        if question == "give_up" and self._lacks_end and self._limit is not None:
            self._options["time"] = f"{self._limit:g}s"
        elif not self._is_skippable(question):
            return _NEEDED[question]
        return None

    def _is_skippable(self, question: str) -> bool:
        if self._look["require"] != "strict" or question == "success":
            return True
        return question == "give_up" and not self._lacks_end

    def _words(self, question: str, offered: str) -> str:
        hints = [_EXAMPLES[question]]
        if offered:
            hints = [f"Enter: as last time, {_NONE}: none"]
        elif question == "give_up" and self._limit is not None:
            hints = [f"default: {_span(self._limit)}, the time limit"]
        elif self._is_skippable(question):
            hints.append("Enter to skip")
        hint = "; ".join(filter(None, hints))
        return f"{_WORDS[question]} ({hint})" if hint else _WORDS[question]

    @property
    def _lacks_end(self) -> bool:
        return "end" in self._look["missing"]

    @property
    def _limit(self) -> float | None:
        limit = self._look["time_limit_seconds"]
        return None if limit is None else float(limit)

    def _looked(self, given: "dict[str, Any]") -> "dict[str, Any]":
        """How it stands with this answer. Changes nothing."""
        job = {**self._body, "options": {**self._options, **given.get("options", {})}}
        return self._client.post("/charter", {"job": job, "give_up": given.get("give_up")})


def _read(words: str, offered: str) -> str | None:
    """A line that was typed; None at the end of input (Ctrl-D)."""
    _say(words)
    sys.stderr.write(f"[{one_line(offered)}] > " if offered else "> ")
    sys.stderr.flush()
    try:
        line = sys.stdin.buffer.readline()
    except KeyboardInterrupt:
        _say("")
        raise
    if not line:
        _say("")
        return None
    return line.decode(errors="replace").strip()


def _say(text: str) -> None:
    print(one_line(text), file=sys.stderr)


def _span(seconds: float) -> str:
    from muster.model.units import show_seconds

    return show_seconds(seconds)
