"""The token that slurmrestd is shown: a JWT as ``scontrol token`` writes it.

Tokens expire, so it is read anew each time: from the file that the configuration names, or from SLURM_JWT in
the environment. Whom it is for and until when stands in its second part; whether that is true, Slurm checks.
"""

import base64
import binascii
import os
import re
import stat

import msgspec

from muster.engines.slurm.errors import BadConfiguration, NotAuthenticated

VARIABLE = "SLURM_JWT"
_MOST_BYTES = 16 * 1024
_WORD = re.compile(rf"(?:{VARIABLE}=)?([A-Za-z0-9_.=+/-]{{1,{_MOST_BYTES}}})", re.ASCII)
_RENEW = "write a new one there with `scontrol token lifespan=86400`"


class Claims(msgspec.Struct, frozen=True):
    """What a token says of itself. None: it does not say."""

    sun: str | None = None  # the user
    exp: float | None = None  # when it is over, by the wall


class Tokens:
    """``path`` empty: from the environment, if it is there."""

    def __init__(self, path: str = "") -> None:
        self._path = path

    @property
    def source(self) -> str:
        return self._path or f"{VARIABLE} in the environment"

    def read(self) -> str | None:
        """None: there is none, as on a socket that knows who is asking."""
        if not self._path:
            return os.environ.get(VARIABLE) or None
        match = _WORD.fullmatch(_content(self._path).strip())
        if match is None:
            raise NotAuthenticated(f"{self._path} holds no token for slurmrestd: {_RENEW}")
        return match[1]


def claims(token: str) -> Claims:
    try:
        part = token.split(".")[1]
        return msgspec.json.decode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)), type=Claims)
    except (IndexError, binascii.Error, ValueError, msgspec.MsgspecError):
        return Claims()


def _content(path: str) -> str:
    """Who can read a token can do all that its user may: nobody else is to."""
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.geteuid()):
                raise BadConfiguration(f"{path} is no file of this user's: keep the token in one that is")
            if found.st_mode & 0o077:
                raise BadConfiguration(f"others can read the token in {path}: chmod 600 {path}")
            return file.read(_MOST_BYTES).decode("ascii", errors="replace")
    except OSError as wrong:
        raise NotAuthenticated(
            f"the token for slurmrestd can't be read from {path} ({wrong.strerror}): {_RENEW}"
        ) from None
