"""What a person is told: one sentence, and one thing that they can do about it."""

import msgspec

from muster.model.stewardship import Subject


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """To one person, about one subject."""

    to: str
    about: Subject
    kind: str  # such as verdict, budget, review, silent, finding
    sentence: str
    action: str = ""  # one command, complete
    asks: bool = False  # it stays open until somebody has answered, by that command or otherwise
    urgent: bool = False  # it can't wait for the digest
