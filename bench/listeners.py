"""Many browsers' streams in one process, for ``bench page``: prints the seconds between the ticks."""

import asyncio
import json
import sys

from bench.page import listen

if __name__ == "__main__":
    host, port, cookie, count = sys.argv[1:]
    print(json.dumps(asyncio.run(listen(host, int(port), cookie, int(count)))))
