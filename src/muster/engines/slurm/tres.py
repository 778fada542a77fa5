"""What Slurm counts: TRES strings (``cpu=2,mem=400M,gres/gpu:a40=4``) and GRES strings
(``gpu:a40:2(IDX:1-2)``).

Memory is in mebibytes unless a letter says otherwise, whatever the version. An index is the GPU's true
number on its node, which the job itself can't see where devices are constrained.
"""

import re
from functools import lru_cache

from muster.engines.slurm import hostlist
from muster.engines.slurm.answers import Gpus, Tres
from muster.model.errors import BadInput
from muster.model.units import MIB

_AMOUNT = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,6})[0-9]*)?([KMGTP]?)")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_IN_MEBIBYTES = frozenset(("mem",))
_GRES = re.compile(r"gpu(?::([^:()]+?))?(?::([0-9]{1,6}))?(?:\((?:S:[^)]*|IDX:([^)]*)|[^)]*)\))?")
_COMMA_OUTSIDE = re.compile(r",(?![^(]*\))")
_GPU, _TYPED = "gres/gpu", "gres/gpu:"
_MOST_GPUS = 4096


@lru_cache(maxsize=16384)
def read_tres(text: str) -> Tres | None:
    """None where nothing is said. Raises ``BadInput`` for what is no such string."""
    if not text:
        return None
    amounts = dict(_pair(pair) for pair in text.split(","))
    types = tuple((key[len(_TYPED) :], count) for key, count in amounts.items() if key.startswith(_TYPED))
    return Tres(
        cpus=amounts.get("cpu"),
        memory_bytes=amounts.get("mem"),
        nodes=amounts.get("node"),
        gpus=amounts.get(_GPU, sum(count for _, count in types)),
        gpu_types=types,
        amounts=tuple(amounts.items()),
    )


def _pair(text: str) -> tuple[str, int]:
    key, _, amount = text.partition("=")
    return key, read_amount(amount, in_mebibytes=key in _IN_MEBIBYTES)


def read_amount(text: str, *, in_mebibytes: bool = False) -> int:
    """``400M`` → bytes; a bare number counts whole things, or mebibytes."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise BadInput(f"can't read {text[:40]!r} as an amount, like 400M")
    whole, fraction, letter = match.groups()
    unit = _UNITS[letter] if letter else MIB if in_mebibytes else 1
    return int(whole) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)


@lru_cache(maxsize=16384)
def read_gres(text: str) -> tuple[Gpus, ...]:
    """The GPUs of ``gpu:a40:2(IDX:1-2),nic:1``; other kinds are passed over."""
    found = (_gpus(part) for part in _COMMA_OUTSIDE.split(text) if part.startswith("gpu"))
    return tuple(gpus for gpus in found if gpus is not None)


def _gpus(text: str) -> Gpus | None:
    match = _GRES.fullmatch(text)
    if match is None:
        raise BadInput(f"can't read {text[:80]!r} as GPUs, like gpu:a40:2(IDX:0-1)")
    kind, count, indices = match.groups()
    if count is None:  # "gpu:4", or "gpu" alone
        kind, count = ("", kind) if kind and kind.isdigit() else (kind or "", "1")
    return Gpus(kind or "", int(count), _indices(indices))


def _indices(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    return () if text in ("N/A", "") else hostlist.numbers(text, _MOST_GPUS)
