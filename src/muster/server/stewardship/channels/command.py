"""A command: started for each envelope, with all of it as JSON on its input. Exit code 0 says: taken.

It runs as the user who runs the server, as whoever writes the configuration decides. It gets nothing of the
server's environment but a path to find programs and a language.
"""

import os
import signal
import subprocess

import msgspec

from muster.server.config_post import Channel
from muster.server.stewardship.channels.base import Envelope, NotTaken
from muster.steward.digest import clean

_INHERITED = ("PATH", "LANG", "LC_ALL", "HOME")


class Command:
    """A program and its arguments."""

    def __init__(self, written: Channel) -> None:
        self._argv, self._seconds = list(written.command), written.timeout_seconds

    def send(self, envelope: Envelope) -> None:
        try:
            process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=_environment(envelope),
                cwd="/",
                start_new_session=True,  # so that all of it can be ended
            )
        except OSError as error:
            raise NotTaken(f"its command can't be started: {error.strerror}") from None
        try:
            process.communicate(msgspec.json.encode(envelope), self._seconds)
        except subprocess.TimeoutExpired:
            raise NotTaken(f"its command has not ended within {self._seconds:g} s") from None
        finally:
            _end(process)
        if process.returncode:
            raise NotTaken(f"its command ended with {process.returncode}")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The command and all that it started."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _environment(envelope: Envelope) -> dict[str, str]:
    only = envelope.messages[0] if len(envelope.messages) == 1 else None
    said = {
        "MUSTER_TO": envelope.to,
        "MUSTER_EMAIL": envelope.address or "",
        "MUSTER_DIGEST": "1" if envelope.digest else "0",
        "MUSTER_HEADLINE": envelope.headline,
        "MUSTER_ABOUT": only.about if only else "",
        "MUSTER_KIND": only.kind if only else "",
        "MUSTER_ACTION": only.action if only else "",
    }
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return inherited | {name: clean(value) for name, value in said.items()}
