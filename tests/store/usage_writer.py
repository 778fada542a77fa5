"""A process that runs and measures jobs in a time of its own, and writes it all down, until it is killed."""

import random
import sys
import time

from muster.model.events import Event, Exited, Outcome, Submitted, Vacated
from muster.monitor.ledger import Ledger
from muster.store.journal import Batch, Journal
from usage_world import DAY0, job, placed, sample


def main(url: str, seed: int) -> None:
    luck, journal, ledger = random.Random(seed), Journal.open(url), Ledger()
    events = list(journal.events_after(0))
    counted = [entry.counted_until or DAY0 for entry in journal.entries_living()]
    now = max([DAY0, *counted, *(event.at for event in events)]) + luck.uniform(0, 100)
    for batch in ledger.catch_up(journal, now):
        journal.write(batch, lambda _: None)
    running = [entry.key for entry in ledger.living]
    sys.stdout.write("open\n")
    sys.stdout.flush()
    number = sum(isinstance(event, Submitted) for event in events)
    while True:
        facts: list[Event] = []
        for _ in range(luck.randint(1, 12)):
            now += 5.0
            for key in running:
                ledger.add(sample(key[0], now, 5.0, attempt=key[1]))
        if running and luck.random() < 0.4:
            key = running.pop(luck.randrange(len(running)))
            facts.append(luck.choice([Exited(now, *key, Outcome.FAILED), Vacated(now, *key, "preempted")]))
        if len(running) < 5:
            number += 1
            facts += [Submitted(now, job(str(number))), placed(str(number), now)]
            running.append((str(number), 1))
        journal.write(Batch(events=facts), lambda _: None)
        for event in facts:
            if not isinstance(event, Submitted):
                ledger.apply(event, job(str(number)))
        for batch in ledger.parcels(now, journal.last_seq):
            journal.write(batch, lambda _: None)
        time.sleep(0.001)


main(sys.argv[1], int(sys.argv[2]))
