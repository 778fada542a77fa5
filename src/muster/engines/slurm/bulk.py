"""Making much at once."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Nothing of ten thousand records is rubbish in circles, and to look for it takes a sixth of the time.

    It is looked for afterwards, once. Two threads at a time disturb each other in nothing but that.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
