"""Which Slurm answers, and which steps lift its answers to the shape of the newest.

Muster was tried on 22.05, 24.11 and 26.05. What lies between is lifted from the one below: the steps
look at the shape of a value, too, as the versions between changed some of it earlier. What is newer is
read as the newest, and said once.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from muster.engines.slurm.errors import BadAnswer
from muster.engines.slurm.notices import Notices


class Version(msgspec.Struct, frozen=True, order=True):
    major: int
    minor: int
    micro: int = 0

    def __str__(self) -> str:
        return f"{self.major:02}.{self.minor:02}.{self.micro}"


OLDEST, JSON_EVERYWHERE, NEWEST = Version(22, 5), Version(23, 11), Version(26, 5)
_LETTERS = re.compile(r"([0-9]{2})\.([0-9]{2})(?:\.([0-9]{1,3}))?")


def parse_version(text: str) -> Version:
    """``slurm-wlm 22.05.8`` or ``24.11.5-1`` → the version."""
    match = _LETTERS.search(text[:200])
    if match is None:
        raise BadAnswer("sinfo --version", f"{text[:40]!r} names no version")
    return Version(int(match[1]), int(match[2]), int(match[3] or 0))


def of_meta(meta: object, command: str) -> Version:
    """From an answer's ``meta``: ``Slurm`` in 22.05, ``slurm`` since."""
    if isinstance(meta, dict):
        slurm = meta.get("slurm") or meta.get("Slurm")
        if isinstance(slurm, dict) and isinstance(slurm.get("release"), str):
            return parse_version(slurm["release"])
    raise BadAnswer(command, "it does not say which version of Slurm it is from")


Lift = Callable[[Any], None]
"""Changes a record just decoded, in place, from the shape of one version to the next."""


def chain(version: Version, lifts: tuple[tuple[Version, Lift], ...]) -> tuple[Lift, ...]:
    """The steps from ``version`` up: each is named with the version that it leads to."""
    return tuple(lift for to, lift in lifts if (version.major, version.minor) < (to.major, to.minor))


def check_known(version: Version, notices: Notices) -> None:
    if (version.major, version.minor) > (NEWEST.major, NEWEST.minor):
        notices.say(
            f"Slurm {version} is newer than {NEWEST}, the newest that Muster was tried with; read as that"
        )
    elif (version.major, version.minor) < (OLDEST.major, OLDEST.minor):
        notices.say(
            f"Slurm {version} is older than {OLDEST}, the oldest that Muster was tried with; read as that"
        )
