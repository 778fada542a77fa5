"""One error tree. Its messages are what a user reads: one sentence, and what to do.

Only the command line's ``main`` (and later the HTTP routes) turn these into exit codes.
"""


class MusterError(Exception):
    """Something a person asked for can't be done, and this says why."""

    exit_code = 1


class BadInput(MusterError):
    """What was given can't be understood or can't be right."""

    exit_code = 2


class BadTrace(BadInput):
    """A trace's line is broken: names the file, the line and what was expected."""

    def __init__(self, path: str, line: int, expected: str) -> None:
        super().__init__(f"{path}, line {line}: {expected}")
        self.path, self.line, self.expected = path, line, expected


class UnknownChoice(BadInput):
    """A name is not among the known ones, which are listed."""

    def __init__(self, what: str, given: str, known: list[str]) -> None:
        super().__init__(f"unknown {what} {given!r}; known: {', '.join(known)}")


class IllegalTransition(MusterError):
    """An event arrived that the job's state does not allow; nothing was changed."""
