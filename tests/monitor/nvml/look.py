"""Reads meters whenever it is told what to attend to, a line each, and says what they show: for tests.

It is a process of its own, since a library is loaded once in a process.
"""

import sys

import msgspec

from muster.monitor.meters import Attended, Meters


def main() -> None:
    meters = Meters(sys.argv[1], patience_seconds=float(sys.argv[2]))
    for line in sys.stdin.buffer:
        shown = meters.read(msgspec.json.decode(line, type=list[Attended]))
        sys.stdout.buffer.write(msgspec.json.encode((shown, sorted(meters.silent))) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
