"""The knobs, as a value. Presets have names; single knobs can be set by name from the command line."""

from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from muster.model.errors import BadInput, UnknownChoice
from muster.model.units import DAY, MINUTE

Order = Literal["fifo", "fair", "las", "gittins", "srtf", "srsf"]
Placement = Literal["random", "best-fit", "dot-product", "packing", "clustering", "fgd", "default"]
Backfill = Literal["none", "easy", "easy-sjbf", "default"]
Runtimes = Literal["asked", "predicted", "true"]
Evictable = Literal["none", "low", "lower"]

ROTATING: frozenset[Order] = frozenset({"las", "gittins", "srtf", "srsf"})


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How to decide. Every default is Muster's default."""

    name: str = "fair"

    # Whose turn it is
    order: Order = "fair"
    half_life_seconds: float = 3 * DAY  # after which held use counts half
    charges: tuple[float, float, float] = (
        0.25,
        1.0,
        2.0,
    )  # what a second costs at low, normal, high

    # Where it goes
    place: Placement = "default"
    seed: int = 0  # of the luck that `random` placement needs

    # Who may pass
    backfill: Backfill = "default"
    runtimes: Runtimes = "predicted"
    reservations: int = 1  # jobs that room is kept for, for each kind of hardware asked for
    patience: float = 2.0  # times what it asked to run that a job waits before a plan becomes a promise
    depth: int = 2000  # jobs looked at behind the first reservation, shortest first

    # Who yields
    evict: Evictable = "low"  # whom a job may evict by priority: nobody, low only, any lower
    reclaim: bool = True  # whether owners of a quota evict borrowers
    protected_seconds: float = 10 * MINUTE  # an attempt is left alone this long
    most_evictions: int = 64  # in one cycle
    grace_seconds: float = 30.0  # what leaving may take beyond saving

    # Moving to make room
    compact: bool = True
    compact_gain: float = 2.0  # GPU-seconds won by starting now, per GPU-second that moving costs
    most_moves: int = 8  # for one waiting job

    # Time sharing (las, gittins, srtf, srsf)
    levels_gpu_seconds: tuple[float, ...] = (3250.0, 7200.0)  # las: attained service that demotes


# What others do, for comparison: nobody yields, nobody is moved, the tightest node is the best.
_PLAIN = Policy(order="fifo", place="best-fit", runtimes="asked", evict="none", reclaim=False, compact=False)
# Time sharing: whose turn it is decides anew at every event.
_TURNS = Policy(protected_seconds=0.0)

PRESETS: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy(),
        replace(_PLAIN, name="fifo", backfill="none"),
        replace(_PLAIN, name="easy", backfill="easy"),
        replace(_PLAIN, name="easy-true", backfill="easy", runtimes="true"),
        replace(_PLAIN, name="easy-sjbf", backfill="easy-sjbf"),
        replace(_PLAIN, name="easy-sjbf-true", backfill="easy-sjbf", runtimes="true"),
        replace(_TURNS, name="las", order="las"),
        replace(_TURNS, name="gittins", order="gittins"),
        replace(_TURNS, name="srtf", order="srtf", runtimes="true"),
        replace(_TURNS, name="srsf", order="srsf", runtimes="true"),
    )
}


def preset(name: str) -> Policy:
    """A policy by its name."""
    try:
        return PRESETS[name]
    except KeyError:
        raise UnknownChoice("policy", name, sorted(PRESETS)) from None


def tuned(policy: Policy, knobs: dict[str, str]) -> Policy:
    """The policy with some knobs set from text: ``{"place": "fgd", "reservations": "4"}``."""
    known = {f.name: f for f in msgspec.structs.fields(Policy)}
    changes: dict[str, object] = {}
    for knob, text in knobs.items():
        key = knob.replace("-", "_")
        if key not in known:
            raise UnknownChoice("knob", knob, sorted(known))
        changes[key] = _value(knob, text, known[key].type)
    return replace(policy, **changes)


def _value(knob: str, text: str, kind: object) -> object:
    if choices := get_args(kind):
        if text in choices:
            return text
        if all(isinstance(c, str) for c in choices):
            raise UnknownChoice(knob, text, sorted(choices))
        text = f"[{text}]"
    try:
        value = msgspec.convert(_plain(text), kind, strict=False)
    except (msgspec.ValidationError, msgspec.DecodeError, ValueError) as error:
        raise BadInput(f"{knob}={text!r} does not fit: {error}") from None
    numbers = value if isinstance(value, tuple) else (value,)
    if not all(0 <= n < 1e12 for n in numbers if isinstance(n, float | int)):
        raise BadInput(f"{knob}={text} must be zero or more, and not absurd")
    if knob.replace("-", "_") == "half_life_seconds" and not value:
        raise BadInput(f"{knob}={text} must be above zero: what was held has to fade some time")
    return value


def _plain(text: str) -> object:
    return msgspec.json.decode(text) if text.startswith("[") else text
