"""Numbers in the kernel's texts. What is no number, or none that can be, is None: a lie goes no further."""

from muster.model.units import KIB

MOST = 1 << 62  # nothing here is ever as much; 2⁶⁴−1, which some write for "not known", is more


def count(text: bytes) -> int | None:
    """A whole number, not negative."""
    try:
        value = int(text)
    except ValueError:
        return None
    return value if 0 <= value < MOST else None


def keyed(text: bytes, key: bytes) -> int | None:
    """The number in a line such as ``inactive_file 4096``."""
    line = _line(text, key + b" ")
    return None if line is None else count(line)


def kib_bytes(text: bytes, key: bytes) -> int | None:
    """A size such as ``MemTotal:   24681472 kB``, in bytes."""
    line = _line(text, key)
    kib = None if line is None else count(line.removesuffix(b"kB"))
    return None if kib is None else kib * KIB


def _line(text: bytes, head: bytes) -> bytes | None:
    """The rest of the line that begins so."""
    if text.startswith(head):
        start = len(head)
    elif (before := text.find(b"\n" + head)) >= 0:
        start = before + 1 + len(head)
    else:
        return None
    end = text.find(b"\n", start)
    return text[start:end] if end >= 0 else text[start:]


def scaled(value: int | None, parts: int) -> float | None:
    """Of nanoseconds and the like: seconds."""
    return None if value is None else value / parts


def pressure_seconds(text: bytes) -> float | None:
    """How long someone has waited: the total in the line ``some avg10=0.00 … total=1234``, microseconds."""
    line = _line(text, b"some ")
    return None if line is None else scaled(count(line.partition(b"total=")[2]), 1_000_000)
