"""What jobs of the simulated site report: loss and a score, by how far they have come.

A curve comes to its target, the one that the job's success names, when the job has done all its work; or it
stalls on the way, or breaks. Whether an exit is met is not said here: the steward finds out.
"""

import math

from muster.demo.habits import luck
from muster.demo.work import Kind

_HIGHEST = {"accuracy": ("val_acc", 0.9), "reward": ("success_rate", 0.85)}
_LOWEST = {"wer": ("wer", 0.09), "stalls": ("wer", 0.07)}
_STUCK_AT = 0.45  # how far those come that stall
_BROKEN_AT = 0.55


def values_at(kind: Kind, key: str, done: float) -> dict[str, float]:
    """What the job with this key reports when so much of its work is done, from 0 to 1."""
    curve = kind.curve or ""
    stalls = curve == "stalls" or (bool(kind.failure) and luck(f"stall {key}") < _stalling(kind))
    done = min(done, _STUCK_AT) if stalls else done
    rough = 0.01 * (luck(f"{key}@{done:.4f}") - 0.5)
    fallen = math.exp(-3.5 * done)
    loss = 0.9 + 3.2 * fallen + 4 * rough * (1 - done)
    if curve == "nan" and done > _BROKEN_AT:
        return {"loss": math.nan}
    values = {"loss": round(loss, 4), "val_loss": round(loss * 1.06 + 0.02, 4)}
    metric, target = _target(kind)
    if metric:
        values[metric] = round(_score(kind, target, done) + rough * (1 - done), 4)
    return values


def _stalling(kind: Kind) -> float:
    """The part of a kind that comes to nothing. Work that is named once does not."""
    return 0.3 if kind.each_day else 0.0


def _target(kind: Kind) -> tuple[str, float]:
    """The metric that success names, and what it has to be."""
    usual = _HIGHEST.get(kind.curve or "") or _LOWEST.get(kind.curve or "") or ("", 0.0)
    words = kind.success[0].split() if kind.success else []
    return (words[0], float(words[2])) if usual[0] and len(words) == 3 else usual


def _score(kind: Kind, target: float, done: float) -> float:
    """Beyond the target by a little, when all is done."""
    risen = (1 - math.exp(-4 * done)) / (1 - math.exp(-4))
    if kind.curve in _LOWEST:
        return target * (0.995 + 5 * (1 - risen))
    return min(0.999, target * (0.45 + 0.552 * risen))
