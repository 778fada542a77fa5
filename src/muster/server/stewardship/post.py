"""The post office: takes messages, decides by ``steward.attention`` what goes out, and keeps account of it.

A message is written down first and sent then, and written down as delivered once a channel has taken it. So
a crash may send one twice and loses none. Couriers do the sending, in threads of their own; at most one thing
is on its way to one person over one channel, and a channel that does not answer delays nothing else.

A question closes by itself when a fact answers it (``steward.answering``).
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol

from msgspec.structs import replace

from muster.model.errors import MusterError
from muster.model.events import Event
from muster.model.job import JobId
from muster.model.message import Message
from muster.model.post import TERMINAL, Delivered, Letter, Mailbox, Messaged, Settled
from muster.model.stewardship import Subject, of_job, split
from muster.model.units import DAY
from muster.server.answers import JobView
from muster.server.config_post import Channel
from muster.server.config_tables import Config, UserTable
from muster.server.errors import NotFound
from muster.server.people import Person
from muster.server.stewardship.channels import Courier, Done, Envelope, NotTaken, Write, sender
from muster.server.stewardship.hours import moments, since_words
from muster.server.stewardship.writing import Listed, chosen, envelope, line_of
from muster.steward.answering import ANSWERS, ENDS, answer_to, subject_of
from muster.steward.attention import AttentionRules, GaveUp, Moments, Send, due
from muster.steward.digest import Digest, Single, clean
from muster.store.fold import Fold
from muster.store.journal import Journal

log = logging.getLogger("muster")

_TICK_SECONDS = 15.0  # after which is looked whether a time has come, or somebody has set the clock
_LAST_SECONDS = 2.0  # that are left for what is being sent when the server ends
_LONGEST_SINCE_SECONDS = 7 * DAY

Way = tuple[str, str]  # a person and a channel


class Acting(Protocol):
    """What is needed of the service."""

    fold: Fold
    journal: Journal
    recent: OrderedDict[JobId, JobView]

    def now(self) -> float: ...

    def wall(self) -> float: ...

    def note(self, event: Event) -> None: ...

    async def durable(self) -> None: ...


class _Carried:
    """Something on its way."""

    def __init__(self, send: Send, as_of: float) -> None:
        self.send, self.as_of = send, as_of
        self.is_wanted = True  # False: it was answered meanwhile


class Post:
    """Everybody's post."""

    def __init__(self, service: Acting, config: Config) -> None:
        self._service, self._config = service, config
        self._couriers: dict[str, tuple[Channel, Courier]] = {}
        self._under_way: dict[Way, _Carried] = {}
        self.gave_up: dict[Way, GaveUp] = {}
        self._stirred: set[str] = set()  # whose box may have something to send
        self._later: set[str] = set()  # and for whom there was no room at a courier's
        self._moments: Moments | None = None
        self._is_over = False
        self._round: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self.now_called: Callable[[str], str] = str  # whoever was renamed, by the name that they have now

    # --- Beginning and end --------------------------------------------------------------------------

    def begin(self) -> None:
        self.configure(self._config)
        self._timer = self._loop.call_later(_TICK_SECONDS, self._tick)

    def configure(self, config: Config) -> None:
        """Channels that are as they were go on with what they carry."""
        self._config = config
        for name, (written, courier) in list(self._couriers.items()):
            if config.channel.get(name) != written:
                courier.close()
                del self._couriers[name]
                self._forget_ways(name)
        for name, written in config.channel.items():
            if name not in self._couriers:
                self._couriers[name] = written, Courier(name, sender(written))
        self._forward()
        self._moments = None  # everybody is looked at again
        self._begin_round()

    def _forward(self) -> None:
        """What is open, or new, of somebody who has another name by now goes to that."""
        for name, box in list(self._service.fold.mailboxes.boxes.items()):
            if self.now_called(name) != name:
                letters = [one for one in box.letters.values() if one.settled_at is None and _is_shown(one)]
                for letter in letters:
                    self.tell(letter.message)
                self._settle([one.number for one in letters], f"{name} is {self.now_called(name)} now")

    def _forget_ways(self, channel: str) -> None:
        self._under_way = {way: one for way, one in self._under_way.items() if way[1] != channel}
        self.gave_up = {way: one for way, one in self.gave_up.items() if way[1] != channel}

    async def finish(self) -> None:
        """Send nothing more. What is being sent now gets a little time, so as not to be sent twice."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._round is not None:
            self._round.cancel()
        couriers = [courier for _, courier in self._couriers.values()]
        for courier in couriers:
            courier.close()
        patience = self._loop.time() + _LAST_SECONDS
        while any(courier.is_busy for courier in couriers) and self._loop.time() < patience:
            await asyncio.sleep(_LAST_SECONDS / 40)
        await asyncio.sleep(0)  # what they have said since is heard
        self._couriers, self._under_way = {}, {}

    @property
    def trouble(self) -> str | None:
        """Which channels do not take messages, in a sentence."""
        said = [f"channel {name}: {c.trouble}" for name, (_, c) in self._couriers.items() if c.trouble]
        return "; ".join(said) or None

    # --- In -----------------------------------------------------------------------------------------

    def tell(self, message: Message) -> None:
        """Somebody is to know this. What they are told already, in the same words, is not told again."""
        if not message.to:
            log.info("nobody is there to be told: %s", clean(message.sentence))
            return
        to, sentence, action = self.now_called(message.to), clean(message.sentence), clean(message.action)
        message = replace(message, to=to, sentence=sentence, action=action)
        boxes = self._service.fold.mailboxes
        known = boxes.of(message.to).like(message)
        if known is not None and known.message == message:
            return
        number = boxes.last_number + 1 if known is None else known.number
        self._service.note(Messaged(self._service.now(), number, message))
        self._stir(message.to)

    def saw(self, event: Event) -> None:
        """Something has happened: it may answer questions."""
        asked = self._service.fold.mailboxes.asked
        if not asked or type(event) not in ANSWERS:
            return
        answered: dict[str, list[int]] = {}
        for subject in self._subjects(event):
            for letter in self._about(subject):
                because = answer_to(letter.message, event)
                if because is not None:
                    answered.setdefault(because, []).append(letter.number)
        for because, numbers in answered.items():
            self._settle(numbers, because)

    def _subjects(self, event: Event) -> Iterator[Subject]:
        """An array is answered for with one of its members, and has ended with the last."""
        subject = subject_of(event)
        if subject is None:
            return
        yield subject
        kind, name = split(subject)
        array, _, index = name.rpartition("_")
        record = self._service.fold.arrays.get(array) if kind == "job" and index else None
        if record is not None and (not isinstance(event, ENDS) or record.outcome is not None):
            yield of_job(array)

    def _about(self, subject: Subject) -> list[Letter]:
        boxes = self._service.fold.mailboxes
        found = (boxes.letter(number) for number in boxes.asked.get(subject, ()))
        return [letter for letter in found if letter is not None]

    def answered(self, about: Subject, kind: str, because: str) -> None:
        """Whoever asked knows that there is nothing left to answer."""
        self._settle([one.number for one in self._about(about) if one.message.kind == kind], because)

    def settle(self, person: Person, number: int, because: str) -> Letter:
        """The person says that it is done."""
        letter = self._service.fold.mailboxes.letter(number)
        if letter is None or not (person.role == "admin" or person.is_called(letter.message.to)):
            raise NotFound(f"you have no message {number}; muster digest shows them")
        if letter.settled_at is None:
            self._settle([number], f"{because} by {person.name}")
        return self._service.fold.mailboxes.letter(number) or letter

    def _settle(self, numbers: list[int], because: str) -> None:
        if not numbers:
            return
        self._service.note(Settled(self._service.now(), tuple(numbers), because))
        for carried in self._under_way.values():
            if not carried.send.digest and set(carried.send.numbers) <= set(numbers):
                carried.is_wanted = False

    # --- Looking ------------------------------------------------------------------------------------

    def questions_for(self, person: str) -> int:
        box = self._service.fold.mailboxes.boxes.get(person)
        return 0 if box is None else box.open

    async def digest_of(self, user: str, *, looked: bool) -> tuple[Listed, Digest]:
        """What is there for a person. If they looked themselves, what they saw is no news any more."""
        service, now = self._service, self._service.now()
        box = service.fold.mailboxes.of(user)
        numbers = [n for n, one in box.letters.items() if one.settled_at is None and _is_shown(one)]
        listed = self._listed(user, box, numbers, box.looked_at)
        digest = await asyncio.to_thread(listed.digest, service.journal)
        if looked and (numbers or digest.summary):
            service.note(Delivered(now, tuple(numbers), TERMINAL, user, digest=True, as_of=now))
        return listed, digest

    def channels_of(self, user: str) -> list[str]:
        return list(self._config.channels_of(user))

    def undelivered_to(self, user: str) -> int:
        """Messages that some channel would not take, and that are due there still."""
        box = self._service.fold.mailboxes.of(user)
        found = set[int]()
        for (who, channel), given_up in self.gave_up.items():
            if who == user:
                found |= {one.number for one in chosen(box, given_up.numbers) if one.is_due_on(channel)}
        return len(found)

    def settled_since(self, user: str, since_wall: float) -> list[Letter]:
        since = since_wall - self._service.fold.wall_ahead_seconds
        letters = self._service.fold.mailboxes.of(user).letters.values()
        return [one for one in letters if one.settled_at is not None and one.settled_at > since]

    def _listed(self, user: str, box: Mailbox, numbers: Iterable[int], last: float | None) -> Listed:
        service = self._service
        now, wall = service.now(), service.wall()
        since = max(now - DAY if last is None else last, now - _LONGEST_SINCE_SECONDS)
        since_wall = since + wall - now
        return Listed(
            to=user,
            letters=chosen(box, tuple(numbers)),
            since_wall=since_wall,
            since=since_words(self._config.attention, since_wall, wall),
            left_out=box.left_out,
            recent=tuple(view for view in service.recent.values() if view.owner == user),
        )

    # --- Out ----------------------------------------------------------------------------------------

    def _stir(self, person: str) -> None:
        self._stirred.add(person)
        self._begin_round()

    def _tick(self) -> None:
        self._timer = self._loop.call_later(_TICK_SECONDS, self._tick)
        self._stirred |= self._later
        self._later = set()
        self._begin_round()

    def _begin_round(self) -> None:
        if not self._is_over and (self._round is None or self._round.done()):
            self._round = self._loop.create_task(self._go_round())

    async def _go_round(self) -> None:
        """What is sent is on disk first; if that fails, a later round tries again."""
        while people := self._whose_turn():
            try:
                await self._service.durable()
            except MusterError as error:
                log.debug("no post is sent: %s", error)
                self._later |= people
                return
            for person in people:
                for channel in self._config.channels_of(person):
                    self._send_if_due(person, channel)

    def _whose_turn(self) -> set[str]:
        """Those to whom something has happened; at a time that concerns all of them, everybody."""
        ahead = self._service.fold.wall_ahead_seconds
        found = moments(self._config.attention, self._service.wall(), ahead)
        stirred, self._stirred = self._stirred, set()
        if found != self._moments:
            self._moments = found
            return set(self._service.fold.mailboxes.boxes)
        return stirred

    def _send_if_due(self, person: str, channel: str) -> None:
        way, now = (person, channel), self._service.now()
        if way in self._under_way or self._moments is None:
            return
        box = self._service.fold.mailboxes.of(person)
        rules = AttentionRules(self._config.attention.interruptions)
        send = due(
            box,
            channel,
            rules,
            self._moments,
            now,
            under_way=self._interrupting(person),
            gave_up=self.gave_up.get(way),
        )
        if send is None:
            return
        carried = _Carried(send, now)
        _, courier = self._couriers[channel]
        if courier.carry(self._writer(way, box, carried), self._teller(way, carried)):
            self._under_way[way] = carried
        else:
            self._later.add(person)

    def _interrupting(self, person: str) -> list[int]:
        ways = ((who, carried.send) for (who, _), carried in self._under_way.items())
        return [number for who, send in ways if who == person and not send.digest for number in send.numbers]

    def _writer(self, way: Way, box: Mailbox, carried: _Carried) -> Write:
        """What the courier calls, in its thread: all that it needs is picked here."""
        person, channel = way
        address = self._config.user.get(person, UserTable()).email
        looks = [at for at in (box.digests.get(channel), box.looked_at) if at is not None]
        listed = self._listed(person, box, carried.send.numbers, max(looks, default=None))
        journal = self._service.journal
        return lambda: _written(listed, carried.send, address, journal) if carried.is_wanted else None

    def _teller(self, way: Way, carried: _Carried) -> Done:
        """What the courier calls when it is through, likewise."""

        def told(trouble: NotTaken | None) -> None:
            with suppress(RuntimeError):  # the server has ended: what is not written down is sent again
                self._loop.call_soon_threadsafe(self.done, way, carried, trouble)

        return told

    def done(self, way: Way, carried: _Carried, trouble: NotTaken | None) -> None:
        """A courier is through with it."""
        if self._under_way.get(way) is not carried:
            return  # the channel has been changed meanwhile
        del self._under_way[way]
        now, (person, channel) = self._service.now(), way
        send = carried.send
        if not carried.is_wanted:
            pass
        elif trouble is None:
            self.gave_up.pop(way, None)
            event = Delivered(now, send.numbers, channel, person, send.digest, carried.as_of)
            self._service.note(event)
        else:
            before = self.gave_up.get(way)
            numbers = frozenset(send.numbers) | (before.numbers if before else frozenset())
            self.gave_up[way] = GaveUp(now, numbers)
        self._stir(person)


def _written(listed: Listed, send: Send, address: str | None, journal: Journal) -> Envelope:
    if send.digest:
        return envelope(listed.digest(journal), listed.letters, address)
    [letter] = listed.letters
    return envelope(Single(listed.to, line_of(letter), send.is_last), [letter], address)


def _is_shown(letter: Letter) -> bool:
    return letter.is_question or not letter.is_known
