"""NVIDIA's management library, as far as it answers.

Every question may go unanswered: the driver is too old to know it, the device does not support it, we may not
ask. Then there is no answer to it, and nothing else follows. A device that has fallen off the bus answers
nothing any more, and that is told apart.
"""

import contextlib
import importlib
from typing import Any

_UNKNOWN = (1 << 32) - 1  # as the library writes it; what is longer than that, as 2⁶⁴−1
_BEYOND = 1 << 62
Handle = Any  # a pointer of the library's own


class Lost(Exception):
    """The device has fallen off the bus."""


class Nvml:
    """The library, opened. Questions have its own names; of several for the same, the newest is first."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def count(self) -> int | None:
        """How many devices there are; None if it does not answer at all any more."""
        with contextlib.suppress(Lost):
            return plausible(self._asked("nvmlDeviceGetCount"))
        return None

    def handle(self, index: int) -> Handle | None:
        return self._asked("nvmlDeviceGetHandleByIndex", index)

    def text(self, question: str, handle: Handle) -> str | None:
        return _text(self._asked(question, handle))

    def number(self, *questions: str, of: Handle, about: tuple[str, ...] = ()) -> int | None:
        """``about``: names of the library's constants."""
        constants = [getattr(self._library, name) for name in about]
        return plausible(self._first(questions, of, *constants))

    def field(self, question: str, handle: Handle, name: str) -> Any:
        """One field of an answer that has several."""
        answer = getattr(self._asked(question, handle), name, None)
        return _text(answer) if isinstance(answer, bytes) else plausible(answer)

    def is_divided(self, handle: Handle) -> bool | None:
        """Into instances (MIG). A device that can't be is not."""
        answer = self._asked("nvmlDeviceGetMigMode", handle, unsupported=(0, 0))
        return None if answer is None else bool(answer[0])

    def processes(self, handle: Handle) -> dict[int, int | None] | None:
        """Those that compute or draw on it, and their bytes there; None if it is not told.

        Who does both is in both lists, with the same bytes.
        """
        computing = self._running("Compute", handle)
        drawing = self._running("Graphics", handle)
        return None if computing is None else (drawing or {}) | computing

    def close(self) -> None:
        with contextlib.suppress(Lost):
            self._asked("nvmlShutdown")

    def _running(self, kind: str, handle: Handle) -> dict[int, int | None] | None:
        """On a divided device one process may be in several instances."""
        names = [f"nvmlDeviceGet{kind}RunningProcesses_{version}" for version in ("v3", "v2")]
        answer = self._first(names, handle)
        if answer is None:
            return None
        found: dict[int, int | None] = {}
        for process in answer:
            before, used = found.get(process.pid, 0), plausible(process.usedGpuMemory)
            found[process.pid] = None if used is None or before is None else before + used
        return found

    def _first(self, questions: tuple[str, ...] | list[str], *about: Any) -> Any:
        answers = (self._asked(question, *about) for question in questions)
        return next((answer for answer in answers if answer is not None), None)

    def _asked(self, question: str, *about: Any, unsupported: Any = None) -> Any:
        try:
            return getattr(self._library, question)(*about)
        except Exception as error:
            code = getattr(error, "value", None)
            if code == self._library.NVML_ERROR_GPU_IS_LOST:
                raise Lost from None
            return unsupported if code == self._library.NVML_ERROR_NOT_SUPPORTED else None


def opened() -> Nvml | None:
    """None where there is none: not installed, no driver, or one that does not fit."""
    try:
        library = importlib.import_module("pynvml")
        library.nvmlInit()
    except Exception:
        return None
    return Nvml(library)


def plausible(number: Any) -> int | None:
    """A number that can be."""
    return number if isinstance(number, int) and 0 <= number < _BEYOND and number != _UNKNOWN else None


def _text(answer: Any) -> str | None:
    if isinstance(answer, bytes):
        return answer.decode(errors="replace")
    return answer if isinstance(answer, str) else None
