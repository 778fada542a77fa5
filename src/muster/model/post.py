"""The post: what was told to people, what reached them, and what is settled; as facts and as mailboxes.

A message that asks is a *question*: open until a fact answers it or its addressee says that it is done.
Others are *news*: they are to reach the person once. Of one subject and kind a person has one message at a
time; what is told again replaces what was told before, under the same number.
"""

import msgspec

from muster.model.events import Event
from muster.model.message import Message

TERMINAL = "terminal"  # the channel that everybody has: they look for themselves


class Messaged(Event, frozen=True):
    """Something is to be told; under a number that is known, it replaces what was."""

    number: int
    message: Message


class Delivered(Event, frozen=True):
    """A channel has taken messages for a person, or the person has looked.

    It is written when the channel has taken them: a crash in between sends them once more, and loses none.
    """

    numbers: tuple[int, ...]
    channel: str
    to: str
    digest: bool
    as_of: float  # what they said then is what was sent; they may have changed while they were on their way


class Settled(Event, frozen=True):
    """Questions that need no answer any more."""

    numbers: tuple[int, ...]
    because: str


class Letter(msgspec.Struct, frozen=True):
    """A message in a mailbox."""

    number: int
    message: Message
    told_at: float
    changed_at: float  # when it became what it says now
    delivered: dict[str, float] = {}  # by channel: as it was then
    interrupted: bool = False  # it was delivered when it could not wait, so it interrupts no more
    settled_at: float | None = None
    because: str = ""  # how it was settled

    @property
    def is_question(self) -> bool:
        """Whether an answer is waited for."""
        return self.message.asks and self.settled_at is None

    @property
    def is_known(self) -> bool:
        """Whether the person has looked at it as it is now."""
        return self.delivered.get(TERMINAL, -1.0) >= self.changed_at

    def is_due_on(self, channel: str) -> bool:
        """Whether it has not gone that way as it is now, and should."""
        if self.settled_at is not None or self.is_known:
            return False
        return self.delivered.get(channel, -1.0) < self.changed_at

    def is_replaced_by(self, message: Message) -> bool:
        """Whether that is about the same; news that have reached somebody stay what they were."""
        own = self.message
        if self.settled_at is not None or (own.to, own.about, own.kind) != (
            message.to,
            message.about,
            message.kind,
        ):
            return False
        return own.asks or not self.delivered


class Mailbox(msgspec.Struct):
    """All that one person was told lately."""

    letters: dict[int, Letter] = {}
    interruptions: tuple[tuple[int, float], ...] = ()  # which and when, of the last days
    digests: dict[str, float] = {}  # the last one, by channel
    looked_at: float | None = None
    left_out: int = 0  # questions and news for which there was no room
    open: int = 0  # questions among the letters: every answer of the API tells it

    def questions(self) -> list[Letter]:
        """What waits for an answer, the oldest first."""
        return [letter for letter in self.letters.values() if letter.is_question]

    def like(self, message: Message) -> Letter | None:
        """The one that this message replaces."""
        found = (one for one in self.letters.values() if one.is_replaced_by(message))
        return next(found, None)
