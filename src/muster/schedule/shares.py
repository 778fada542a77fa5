"""Fair share: what each team and owner has had of the cluster lately, as a step on a ladder.

An account holds decayed held use (cpu-, memory- and GPU-seconds, each second counting half after a
half-life) and what is held now. The *share* is the dominant one of the three resources: the largest
fraction of the cluster, as a recent average or as held now, whichever is more. Its fair share is its weight
among those of its siblings that have work. The *band* says how far above fair it is: 0 up to fair, and one
more for each doubling. Steps instead of a continuum, because small differences in the past should not
decide over what is short, old or urgent today.
"""

import math

from muster.model.job import Priority
from muster.model.resources import Resources
from muster.model.snapshot import Account

Vector = tuple[float, float, float]

_LN2 = math.log(2)
_EVEN = 1 + 1e-9


def charged(held: Resources, priority: Priority, charges: Vector) -> Vector:
    """What holding this costs per second: low priority is cheap, high is dear."""
    factor = charges[priority]
    cpus, memory, gpus = held.vector()
    return (cpus * factor, memory * factor, gpus * factor)


def brought_to(account: Account, now: float, half_life_seconds: float) -> Account:
    """The account as of now: old use has faded, what is held has been added."""
    elapsed = now - account.as_of
    if elapsed <= 0:
        return account
    kept = 0.5 ** (elapsed / half_life_seconds)
    grown = (1 - kept) * half_life_seconds / _LN2
    use, rate = account.use, account.rate
    faded = (
        use[0] * kept + rate[0] * grown,
        use[1] * kept + rate[1] * grown,
        use[2] * kept + rate[2] * grown,
    )
    return Account(faded, rate, now)


def with_rate(account: Account, change: Vector, sign: int) -> Account:
    """Somebody began (+1) or ceased (-1) to hold."""
    r = account.rate
    rate = (r[0] + sign * change[0], r[1] + sign * change[1], r[2] + sign * change[2])
    return Account(account.use, rate, account.as_of)


def summed(account: Account | None, other: Account) -> Account:
    """Two accounts as of the same time, together."""
    if account is None:
        return other
    u, v, r, s = account.use, other.use, account.rate, other.rate
    use = (u[0] + v[0], u[1] + v[1], u[2] + v[2])
    return Account(use, (r[0] + s[0], r[1] + s[1], r[2] + s[2]), other.as_of)


def average(account: Account, total: Vector, half_life_seconds: float) -> float:
    """The dominant share of the cluster, averaged over the recent past."""
    scale = _LN2 / half_life_seconds
    return max((u * scale / t for u, t in zip(account.use, total, strict=True) if t), default=0.0)


def held_now(rate: Vector, total: Vector) -> float:
    """The dominant share of the cluster that is held now."""
    cpus, memory, gpus = total
    share = rate[0] / cpus if cpus else 0.0
    if memory and rate[1] / memory > share:
        share = rate[1] / memory
    if gpus and rate[2] / gpus > share:
        share = rate[2] / gpus
    return share


def band(average: float, now: float, fair: float) -> int:
    """0 while it holds no more than fair now, and had less than twice as much lately; then by doublings."""
    held = 0 if now <= fair * _EVEN else 1 + int(math.log2(now / fair))
    had = 0 if average < 2 * fair else int(math.log2(average / fair))
    return max(held, had)
