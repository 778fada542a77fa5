"""What the store answers is what a plain sum over all rows is, for any history and any interval."""

from random import Random

import pytest
from stores import Opener, put

from muster.model.ledger import By
from muster.model.units import DAY, HOUR
from muster.model.usage import Usage
from muster.monitor.upkeep import Upkeep
from muster.store.journal import Batch, Journal
from muster.store.rows import UsageRows
from usage_world import DAY0, Book, World, total

T, NOW = DAY0, DAY0 + DAY


def assert_same(journal: Journal, book: Book, since: float, until: float) -> None:
    everything = total(journal.usage_between(since, until, By.JOB, now=NOW))
    for by in By:
        found = journal.usage_between(since, until, by, now=NOW)
        plain = {who: usage for who, usage in book.usage(by, since, until).items() if usage.held_seconds}
        assert {who: usage for who, usage in found.items() if usage.held_seconds} == plain
        assert by is By.GPU or total(found) == everything


@pytest.mark.parametrize("seed", range(5))
def test_any_interval_of_any_history_is_summed_exactly(url: str, opened: Opener, seed: int) -> None:
    luck, journal = Random(seed), opened(url)
    book = World(seed).played(luck)
    put(journal, Batch(ended=list(book.ended.values())))
    put(journal, Batch(usage=UsageRows(list(book.entries.values()), list(book.minutes.values()))))
    moments = sorted(T + luck.uniform(-100, 3 * HOUR) for _ in range(12))
    intervals = [(T - DAY, NOW), *((luck.choice(moments), luck.choice(moments)) for _ in range(12))]
    for since, until in intervals:
        assert_same(journal, book, since, until)
    upkeep = Upkeep(journal)
    upkeep.roll_up(NOW)
    for since, until in intervals:
        assert_same(journal, book, since, until)
    assert upkeep.prune(NOW + 3 * DAY) == len(book.minutes)
    for first in range(4):
        assert_same(journal, book, T + first * HOUR, T + 4 * HOUR)
    for since, until in intervals:  # by hours alone, they are cut as if spent evenly, and still add up
        parts = [(T - DAY, since), (since, max(since, until)), (max(since, until), NOW)]
        found = [total(journal.usage_between(a, b, By.TEAM, now=NOW)) for a, b in parts]
        assert sum(found, Usage()) == total(book.usage(By.TEAM, T - DAY, NOW))
