"""A terminal with a person at it: reads what is shown, types, presses Ctrl-C."""

import os
import pty
import select
import subprocess
import sys
import time

PATIENCE_SECONDS = 30.0
CTRL_C, CTRL_D = "\x03", "\x04"
# The terminal is the session's own, so that its keys become signals.
_INSIDE = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.executable, [sys.executable, '-m', 'muster', *sys.argv[1:]])"
)


class Terminal:
    """``muster`` with these words, on a terminal of its own."""

    def __init__(self, *words: str, **environment: str) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _INSIDE, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""
        self._seen = 0  # up to where something was waited for

    def sees(self, *texts: str) -> "Terminal":
        """Waits until each is shown, one after the other."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        for text in texts:
            while (at := self.shown.find(text, self._seen)) < 0:
                assert time.monotonic() < deadline, f"waited in vain for {text!r}:\n{self.shown}"
                assert self._read(), f"it ended without {text!r}:\n{self.shown}"
            self._seen = at + len(text)
        return self

    def types(self, text: str) -> "Terminal":
        """A line; a control key is pressed without Enter."""
        os.write(self._ours, (text if text in (CTRL_C, CTRL_D) else f"{text}\n").encode())
        return self

    def ends(self) -> int:
        """All is shown, and the exit code."""
        while self._read():
            pass
        os.close(self._ours)
        return self._process.wait(PATIENCE_SECONDS)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], PATIENCE_SECONDS)
        try:
            found = os.read(self._ours, 4096) if ready else b""
        except OSError:  # nobody is at the other end any more
            found = b""
        self.shown += found.decode(errors="replace").replace("\r\n", "\n")
        return bool(found)
