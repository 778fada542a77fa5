"""The post, folded: a mailbox for each person, of bounded size.

What is settled, and news, are kept for a while, so that people can look back; open questions until they are
settled. If there is no room left, the oldest news go first, then what is settled, then the oldest questions,
and how many that were is said.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from muster.model.events import Event
from muster.model.post import TERMINAL, Delivered, Letter, Mailbox, Messaged, Settled
from muster.model.stewardship import Subject
from muster.model.units import DAY

MOST_LETTERS = 300  # in one mailbox
KEPT_SECONDS = 14 * DAY  # news, and what is settled
WEEK_SECONDS = 7 * DAY  # for which interruptions are remembered


class Mailboxes(msgspec.Struct):
    """Everybody's."""

    boxes: dict[str, Mailbox] = {}
    last_number: int = 0
    whose: dict[int, str] = {}  # each letter that is kept
    asked: dict[Subject, tuple[int, ...]] = {}  # open questions, by what they are about

    def apply(self, event: Event) -> None:
        """Take a fact in. What is no longer there is passed over: it was settled and is forgotten."""
        _HANDLERS[type(event)](self, event)

    def copied(self) -> "Mailboxes":
        """One that stays as it is while this goes on."""
        boxes = {
            who: replace(box, letters=dict(box.letters), digests=dict(box.digests))
            for who, box in self.boxes.items()
        }
        return Mailboxes(boxes, self.last_number, dict(self.whose), dict(self.asked))

    def of(self, person: str) -> Mailbox:
        """Theirs; an empty one if nobody ever told them anything."""
        return self.boxes.get(person) or Mailbox()

    def letter(self, number: int) -> Letter | None:
        who = self.whose.get(number)
        return None if who is None else self.boxes[who].letters.get(number)

    # --- Facts in -----------------------------------------------------------------------------------

    def _messaged(self, event: Messaged) -> None:
        number, message = event.number, event.message
        box = self.boxes.setdefault(message.to, Mailbox())
        known = box.letters.get(number)
        if known is None:
            self._put(box, Letter(number, message, event.at, event.at))
        else:
            again = message.urgent and not known.message.urgent
            interrupted = known.interrupted and not again
            self._put(box, replace(known, message=message, changed_at=event.at, interrupted=interrupted))
        self.last_number = max(self.last_number, number)
        self._make_room(box, event.at)

    def _delivered(self, event: Delivered) -> None:
        box = self.boxes.setdefault(event.to, Mailbox())
        if event.channel == TERMINAL:
            box.looked_at = event.at
        elif event.digest:
            box.digests[event.channel] = event.at
        for number in event.numbers:
            letter = box.letters.get(number)
            if letter is not None:
                delivered = {**letter.delivered, event.channel: event.as_of}
                if not event.digest and not letter.interrupted:
                    box.interruptions = (*_lately(box, event.at), (number, event.at))
                interrupted = letter.interrupted or letter.message.urgent
                self._put(box, replace(letter, delivered=delivered, interrupted=interrupted))

    def _settled(self, event: Settled) -> None:
        for number in event.numbers:
            letter = self.letter(number)
            if letter is not None and letter.settled_at is None:
                box = self.boxes[self.whose[number]]
                self._put(box, replace(letter, settled_at=event.at, because=event.because))

    # --- Keeping it small ---------------------------------------------------------------------------

    def _put(self, box: Mailbox, letter: Letter) -> None:
        number, about = letter.number, letter.message.about
        before = box.letters.get(number)
        box.open += letter.is_question - (before is not None and before.is_question)
        box.letters[number] = letter
        self.whose[number] = letter.message.to
        others = tuple(n for n in self.asked.get(about, ()) if n != number)
        open_ones = (*others, number) if letter.is_question else others
        if open_ones:
            self.asked[about] = open_ones
        else:
            self.asked.pop(about, None)

    def _make_room(self, box: Mailbox, now: float) -> None:
        for letter in list(box.letters.values()):
            if not letter.is_question and now - letter.changed_at > KEPT_SECONDS:
                self._drop(box, letter)
        while len(box.letters) > MOST_LETTERS:
            self._drop(box, min(box.letters.values(), key=_worth))
            box.left_out += 1

    def _drop(self, box: Mailbox, letter: Letter) -> None:
        self._put(box, replace(letter, settled_at=letter.changed_at))  # no question of it is left
        del box.letters[letter.number], self.whose[letter.number]


def _worth(letter: Letter) -> tuple[int, float]:
    kind = 2 if letter.is_question else 1 if letter.settled_at is not None else 0
    return kind, letter.changed_at


def _lately(box: Mailbox, now: float) -> tuple[tuple[int, float], ...]:
    return tuple(one for one in box.interruptions if now - one[1] <= WEEK_SECONDS)


_HANDLERS: dict[type[Event], Callable[[Mailboxes, Any], None]] = {
    Messaged: Mailboxes._messaged,
    Delivered: Mailboxes._delivered,
    Settled: Mailboxes._settled,
}
POSTED = tuple(_HANDLERS)
