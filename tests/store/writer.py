"""A process that writes until it is killed, and prints the number of the last event of each batch once it
was told that it is durable. Each event carries its own number as its time."""

import random
import sys
import time

from muster.model.events import Held
from muster.store.journal import Batch, Journal


def say(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def main(url: str, seed: int) -> None:
    luck = random.Random(seed)
    journal = Journal.open(url)
    say("open")
    while True:
        first, count = journal.last_seq + 1, luck.randint(1, 5)
        last = first + count - 1
        events = [Held(float(seq), "1") for seq in range(first, last + 1)]
        journal.write(Batch(events=events), lambda error, last=last: say(last))
        time.sleep(luck.choice([0.0, 0.0, 0.001, 0.005]))


main(sys.argv[1], int(sys.argv[2]))
