"""What is sent now, and what waits: interruptions and their cap, one digest a day, nothing twice."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from muster.model.events import Event
from muster.model.message import Message
from muster.model.post import TERMINAL, Delivered, Mailbox, Messaged, Settled
from muster.model.units import DAY, HOUR, MINUTE
from muster.steward.attention import AttentionRules, GaveUp, Moments, Send, due
from muster.store.mailbox import KEPT_SECONDS, MOST_LETTERS, Mailboxes

RULES = AttentionRules(interruptions=3)
NINE = 1000 * DAY  # on the wall and by us


class Ana:
    """Somebody's mailbox, and a clock."""

    def __init__(self, now: float = NINE - HOUR) -> None:
        self.now, self.boxes = now, Mailboxes()
        self.sent: list[tuple[float, str, Send]] = []

    @property
    def box(self) -> Mailbox:
        return self.boxes.of("ana")

    def apply(self, event: Event) -> None:
        self.boxes.apply(event)

    def told(self, about: str = "job:1", *, asks: bool = True, urgent: bool = False, said: str = "") -> int:
        """As the server does it: the same question keeps its number."""
        message = Message(
            to="ana", about=about, kind="budget", sentence=said or about, asks=asks, urgent=urgent
        )
        known = self.box.like(message)
        number = self.boxes.last_number + 1 if known is None else known.number
        if known is None or known.message != message:
            self.apply(Messaged(self.now, number, message))
        return number

    def moments(self, *, quiet: bool = False) -> Moments:
        return Moments(NINE + DAY * ((self.now - NINE) // DAY), quiet)

    def due(
        self, channel: str = "mail", *, quiet: bool = False, gave_up: GaveUp | None = None
    ) -> Send | None:
        return due(self.box, channel, RULES, self.moments(quiet=quiet), self.now, gave_up=gave_up)

    def send(self, channel: str = "mail") -> list[Send]:
        """All that is due, taken by the channel."""
        sent = []
        while (send := self.due(channel)) is not None:
            sent.append(send)
            self.sent.append((self.now, channel, send))
            self.apply(Delivered(self.now, send.numbers, channel, "ana", send.digest, self.now))
        return sent

    def looks(self) -> None:
        self.apply(Delivered(self.now, tuple(self.box.letters), TERMINAL, "ana", digest=True, as_of=self.now))


def test_what_can_wait_comes_in_the_next_digest_and_once() -> None:
    ana = Ana()
    one, two = ana.told("job:1"), ana.told("job:2", asks=False)
    assert ana.send() == []
    ana.now = NINE
    assert ana.send() == [Send((one, two), digest=True)]
    ana.now = NINE + DAY
    assert ana.send() == []


def test_what_is_told_after_the_moment_waits_for_the_next_day() -> None:
    ana = Ana(NINE + MINUTE)
    ana.told()
    assert ana.due() is None
    ana.now = NINE + DAY - MINUTE
    assert ana.due() is None
    ana.now = NINE + DAY
    assert ana.due() == Send((1,), digest=True)


def test_a_digest_that_was_missed_comes_when_the_server_is_back() -> None:
    ana = Ana()
    ana.told()
    ana.now = NINE + 3 * HOUR
    assert ana.send() == [Send((1,), digest=True)]


def test_a_digest_shows_what_is_open_still_but_that_alone_causes_none() -> None:
    ana = Ana()
    ana.told("job:1")
    ana.now = NINE
    ana.send()
    ana.now += HOUR
    ana.told("job:2", asks=False)
    ana.now = NINE + DAY
    assert ana.send() == [Send((1, 2), digest=True)]


def test_what_cant_wait_comes_at_once_and_by_itself() -> None:
    ana = Ana()
    first, second = ana.told("job:1", urgent=True), ana.told("job:2", urgent=True)
    assert ana.send() == [Send((first,), digest=False), Send((second,), digest=False)]
    assert [number for number, _ in ana.box.interruptions] == [first, second]


def test_beyond_the_cap_it_goes_to_the_digest_and_the_last_says_so() -> None:
    ana = Ana()
    for job in range(5):
        ana.told(f"job:{job}", urgent=True)
    assert ana.send() == [
        Send((1,), digest=False),
        Send((2,), digest=False),
        Send((3,), digest=False, is_last=True),
    ]
    ana.now = NINE
    assert ana.send() == [Send((1, 2, 3, 4, 5), digest=True)]
    ana.now += DAY
    assert ana.send() == []


def test_a_day_later_there_may_be_interruptions_again() -> None:
    ana = Ana(NINE + HOUR)
    for job in range(3):
        ana.told(f"job:{job}", urgent=True)
    ana.send()
    ana.now += 22 * HOUR
    ana.told("job:8", urgent=True)
    assert ana.due() is None
    ana.now += 2 * HOUR
    assert [send.digest for send in ana.send()] == [True]
    ana.told("job:9", urgent=True)
    assert ana.send() == [Send((5,), digest=False)]


def test_in_quiet_hours_nobody_is_interrupted() -> None:
    ana = Ana()
    ana.told(urgent=True)
    assert ana.due(quiet=True) is None
    assert ana.due() == Send((1,), digest=False)


def test_told_again_in_the_same_words_nothing_happens_in_others_it_is_updated() -> None:
    ana = Ana()
    assert ana.told(said="80 % are spent", urgent=True) == 1
    ana.send()
    ana.now += MINUTE
    assert ana.told(said="80 % are spent", urgent=True) == 1
    assert ana.due() is None
    assert ana.told(said="90 % are spent", urgent=True) == 1
    assert ana.due() is None  # nobody is interrupted twice by one thing
    ana.now = NINE
    assert ana.send() == [Send((1,), digest=True)]
    assert ana.box.letters[1].message.sentence == "90 % are spent"


def test_a_question_that_can_no_longer_wait_interrupts() -> None:
    ana = Ana()
    ana.told(said="warning 1")
    ana.now = NINE
    ana.send()
    ana.now += HOUR
    ana.told(said="warning 2, it is stopped in an hour", urgent=True)
    assert ana.send() == [Send((1,), digest=False)]


def test_news_that_replace_a_question_close_it() -> None:
    ana = Ana()
    ana.told()
    ana.told(asks=False, said="it was stopped")
    assert ana.box.questions() == []
    assert ana.boxes.asked == {}
    assert list(ana.box.letters) == [1]


def test_what_is_settled_is_not_sent_and_the_next_of_its_kind_is_another() -> None:
    ana = Ana()
    ana.told(urgent=True)
    ana.apply(Settled(ana.now, (1,), "done by ana"))
    ana.now = NINE
    assert ana.send() == []
    assert ana.told(said="again") == 2


def test_who_has_looked_is_not_written_to_about_the_same() -> None:
    ana = Ana()
    ana.told("job:1")
    ana.told("job:2", asks=False)
    ana.looks()
    ana.now = NINE
    assert ana.send() == []
    assert [letter.number for letter in ana.box.questions()] == [1]


def test_one_interruption_on_two_channels_counts_once() -> None:
    ana = Ana()
    for job in range(3):
        ana.told(f"job:{job}", urgent=True)
    assert [send.numbers for send in ana.send("mail")] == [(1,), (2,), (3,)]
    assert [send.numbers for send in ana.send("slack")] == [(1,), (2,), (3,)]
    assert len(ana.box.interruptions) == 3
    ana.told("job:9", urgent=True)
    assert ana.due("slack") is None


def test_those_on_their_way_count_too() -> None:
    ana = Ana()
    for job in range(4):
        ana.told(f"job:{job}", urgent=True)
    found = due(ana.box, "slack", AttentionRules(1), ana.moments(), ana.now, under_way=[1])
    assert found == Send((1,), digest=False)


def test_what_was_given_up_waits_for_the_next_digest_and_new_things_are_tried() -> None:
    ana = Ana(NINE + HOUR)
    ana.told("job:1", urgent=True)
    gave_up = GaveUp(ana.now, frozenset({1}))
    assert ana.due(gave_up=gave_up) is None
    ana.told("job:2", urgent=True)
    assert ana.due(gave_up=gave_up) == Send((2,), digest=False)
    ana.now = NINE + DAY
    assert ana.due(gave_up=gave_up) == Send((1, 2), digest=True)


def test_what_changed_on_its_way_is_due_as_it_is_now() -> None:
    ana = Ana()
    ana.told(said="before")
    ana.now = NINE
    as_of = ana.now
    ana.now += MINUTE
    ana.told(said="after")
    ana.apply(Delivered(ana.now + 1, (1,), "mail", "ana", digest=True, as_of=as_of))
    ana.now = NINE + DAY
    assert ana.due() == Send((1,), digest=True)


def test_however_the_clock_is_set_digests_are_half_a_day_apart() -> None:
    ana = Ana()
    ana.told("job:1")
    ana.now = NINE
    ana.send()
    ana.now += HOUR
    ana.told("job:2")
    ahead = Moments(ana.now)  # somebody has set it, and it is nine o'clock again
    assert due(ana.box, "mail", RULES, ahead, ana.now) is None
    assert due(ana.box, "mail", RULES, ahead, ana.now + 12 * HOUR) == Send((1, 2), digest=True)


@given(st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.booleans(), st.integers(0, 600)), max_size=60))
def test_whatever_is_told_attention_is_protected_and_nothing_is_lost(
    story: list[tuple[int, bool, bool, int]],
) -> None:
    ana = Ana()
    for job, asks, urgent, minutes in story:
        ana.told(f"job:{job}", asks=asks, urgent=urgent, said=f"{minutes}")
        ana.send()
        ana.now += minutes * MINUTE
    ana.now += 2 * DAY
    ana.send()
    assert not [letter for letter in ana.box.letters.values() if letter.is_due_on("mail")]
    assert ana.box.open == len(ana.box.questions())
    digests = [at for at, _, send in ana.sent if send.digest]
    assert all(later - before >= 12 * HOUR for before, later in pairwise(digests))
    single = [at for at, _, send in ana.sent if not send.digest]
    assert all(sum(0 <= at - first < DAY for at in single) <= RULES.interruptions for first in single)
    assert all(len(send.numbers) == 1 for _, _, send in ana.sent if not send.digest)


# --- Mailboxes stay small ---------------------------------------------------------------------------


def test_a_mailbox_is_bounded_and_says_what_was_left_out() -> None:
    ana = Ana()
    question = ana.told("effort:first")
    for job in range(MOST_LETTERS + 50):
        ana.told(f"job:{job}", asks=False)
    assert len(ana.box.letters) == MOST_LETTERS
    assert ana.box.left_out == 51
    assert question in ana.box.letters
    assert ana.box.open == 1
    assert set(ana.boxes.whose) == set(ana.box.letters)


def test_news_and_what_is_settled_are_forgotten_after_a_while_and_questions_are_not() -> None:
    ana = Ana()
    ana.told("job:1")
    ana.told("job:2")
    ana.told("job:3", asks=False)
    ana.apply(Settled(ana.now, (2,), "done"))
    ana.now += KEPT_SECONDS + DAY
    ana.told("job:4")
    assert list(ana.box.letters) == [1, 4]
    assert ana.boxes.asked == {"job:1": (1,), "job:4": (4,)}


def test_what_nobody_remembers_is_passed_over() -> None:
    boxes = Mailboxes()
    boxes.apply(Settled(1.0, (7,), "done"))
    boxes.apply(Delivered(1.0, (7,), "mail", "ana", digest=True, as_of=1.0))
    assert boxes.of("ana").digests == {"mail": 1.0}
