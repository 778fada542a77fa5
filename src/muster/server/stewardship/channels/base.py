"""What every channel has in common: an envelope to send, a limit on time, and how trouble is said."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from muster.model.errors import MusterError
from muster.model.message import Message

_MOST_SECRET_BYTES = 4096


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What goes to one person over one channel, in every form that a channel may want."""

    to: str
    address: str | None  # of e-mail
    digest: bool
    numbers: tuple[int, ...]
    messages: tuple[Message, ...]  # in the order of their numbers
    headline: str
    text: str
    markdown: str
    slack: str


class NotTaken(MusterError):
    """The channel did not take it. ``for_good``: there is no use in trying the same again soon."""

    def __init__(self, sentence: str, *, for_good: bool = False) -> None:
        super().__init__(sentence)
        self.for_good = for_good


class Sender(Protocol):
    """Sends, and returns when it was taken; raises NotTaken otherwise. In any thread."""

    def send(self, envelope: Envelope) -> None: ...


def secret_in(path: str, key: str) -> str:
    """The first line of a file. Read each time: whoever changes a password need not start anything again."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MOST_SECRET_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise NotTaken(f"its {key} can't be read: {why}") from None
    return text.partition("\n")[0].strip()


def why(error: OSError) -> str:
    """Why a connection failed; what an error says beyond its number may hold an address."""
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, socket.gaierror):
        return "its host is not found"
    return error.strerror or type(error).__name__


@contextmanager
def at_most(seconds: float, opened: Callable[[], socket.socket | None]) -> Iterator[None]:
    """Cut a connection off when its time is over, however slowly it keeps answering.

    Its socket is asked for only then: with TLS it may have become another.
    """
    is_over = threading.Event()

    def cut_off() -> None:
        is_over.set()
        found = opened()
        with suppress(OSError, ValueError):
            if found is not None:
                found.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut_off)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception:
        if is_over.is_set():
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()
