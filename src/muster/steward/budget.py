"""Budgets: GPU-hours, cpu-hours or money, spent by what is held.

A budget is an amount in a unit. What was held (``held``) makes an amount in that unit by a *scale*, a weight
for each kind of resource. All is reckoned in fractions: nothing is lost by rounding, and the moment at which
a budget will be spent is exact. So the server sets a timer for that moment, and has nothing to poll.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction

import msgspec
from msgspec.structs import replace

from muster.model.charter import Charter, Verdict
from muster.model.errors import BadInput
from muster.model.events import Outcome
from muster.model.job import Gang
from muster.model.units import DAY, GIB, HOUR, MILLI
from muster.steward.held import PERIODS, HeldTime

GPU_HOURS, CPU_HOURS = "GPUh", "CPUh"
WARN_SHARE = Fraction(4, 5)
_MOST = 10**9
_HOUR = 3600
_LIKE = "write it like '200 GPUh', '500 CPUh' or '300 EUR'"
_LIKE_TEAMS = "write it like '900 GPUh per month'"
_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,20})?|\.[0-9]{1,20})"
_WORDS = re.compile(
    rf"(\+)?\s*{_NUMBER}\s*(?:(GPU|CPU)[\s·-]*(?:h|hours?)|(?!.PU)([A-Z]{{3}}))", re.ASCII | re.I
)
_PER = re.compile(rf"\s+per\s+({'|'.join(PERIODS)})", re.ASCII | re.I)
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


class Budget(msgspec.Struct, frozen=True):
    """So much of a unit; of a team perhaps anew in each period."""

    amount: Fraction
    unit: str  # GPUh, CPUh, or a currency
    per: str | None = None

    def __str__(self) -> str:
        return f"{shown(self.amount)} {self.unit}" + (f" per {self.per}" if self.per else "")

    @property
    def is_money(self) -> bool:
        return self.unit not in (GPU_HOURS, CPU_HOURS)


def parse_budget(text: str) -> Budget:
    """``200 GPUh``, ``500 CPUh`` or ``300 EUR``."""
    sign, budget = _read(text, _LIKE)
    if sign:
        raise BadInput(f"{text[:80]!r} says how much more, and nothing is there yet; {_LIKE}")
    return budget


def parse_team_budget(text: str) -> Budget:
    """The same, with ``per week``, ``month``, ``quarter`` or ``year``; without: in all."""
    per = _PER.search(text)
    if per is None:
        return parse_budget(text)
    if per.end() != len(text.rstrip()):
        raise BadInput(f"{text[:80]!r} is not a team's budget; {_LIKE_TEAMS}")
    return replace(parse_budget(text[: per.start()]), per=per[1].lower())


def _read(text: str, like: str) -> tuple[bool, Budget]:
    match = _WORDS.fullmatch(text.strip())
    if match is None:
        raise BadInput(f"{text[:80]!r} is not a budget; {like}")
    amount = Fraction(f"{float(match[2]):.10g}")  # as it will be shown, so that it can be read again
    if not 0 < amount <= _MOST:
        raise BadInput(f"a budget of {match[2]} is not one; it lies above 0 and up to a thousand million")
    unit = f"{match[3].upper()}h" if match[3] else match[4].upper()
    return bool(match[1]), Budget(amount, unit)


def shown(amount: Fraction) -> str:
    """Ten digits at most, and no powers of ten."""
    return f"{Decimal(f'{float(amount):.10g}'):f}"


# --- Prices and scales ----------------------------------------------------------------------------------


class Prices(msgspec.Struct, frozen=True):
    """What an hour costs: of a GPU, by model where it is said, of a cpu, of a GiB of memory."""

    currency: str | None = None  # None: nothing is reckoned in money here
    gpu: float = 0.0
    gpus: Mapping[str, float] = {}
    cpu: float = 0.0
    memory: float = 0.0


def parse_currency(text: str) -> str:
    if not _CURRENCY.fullmatch(text):
        raise BadInput(f"{text[:20]!r} is not a currency; write its three letters, like EUR")
    return text


class BudgetRules(msgspec.Struct, frozen=True):
    """What happens when a budget is spent, and how long there is to decide."""

    pause: str = "auto"  # who keeps checkpoints leaves, others stand still; or requeue, suspend for all
    decide_seconds: float = DAY
    decide_suspended_seconds: float = HOUR  # who stands still holds its seats: it can't be for long


PAUSES = ("auto", "requeue", "suspend")


class Scale(msgspec.Struct, frozen=True):
    """What a whole unit of each resource counts: a thousandth of a cpu or GPU, or a byte, for a second."""

    cpu: Fraction = Fraction(0)
    memory: Fraction = Fraction(0)
    gpu: Fraction = Fraction(0)
    gpus: Mapping[str, Fraction] = {}

    def of(self, held: HeldTime) -> Fraction:
        gpus = sum((self.gpus.get(model, self.gpu) * n for model, n in held.gpu_milli_seconds), Fraction(0))
        return self.cpu * held.cpu_milli_seconds + self.memory * held.memory_byte_seconds + gpus


def scale_of(budget: Budget, prices: Prices) -> Scale:
    """By what is held, in the budget's unit."""
    an_hour = Fraction(1, MILLI * _HOUR)
    if budget.unit == GPU_HOURS:
        return Scale(gpu=an_hour)
    if budget.unit == CPU_HOURS:
        return Scale(cpu=an_hour)
    return Scale(
        cpu=_price(prices.cpu) * an_hour,
        memory=_price(prices.memory) / (GIB * _HOUR),
        gpu=_price(prices.gpu) * an_hour,
        gpus={model: _price(price) * an_hour for model, price in prices.gpus.items()},
    )


def _price(price: float) -> Fraction:
    return Fraction(repr(price))  # as it was written


def check_currency(budget: Budget, prices: Prices) -> None:
    """A budget in money needs prices in that money."""
    if not budget.is_money or budget.unit == prices.currency:
        return
    if prices.currency is None:
        raise BadInput(f"nothing has a price here, so a budget can't be in {budget.unit}; {_LIKE}")
    raise BadInput(f"prices here are in {prices.currency}, not in {budget.unit}; write the budget in that")


def never_spent(budget: Budget, gang: Gang) -> str | None:
    """A budget that a job can't spend, in a sentence: it would run for ever."""
    gpus = any(part.shape.gpus for part in gang.parts)
    if budget.unit == GPU_HOURS and not gpus:
        return f"it holds no GPU, so a budget of {budget} will never be spent; write it in CPUh"
    return None


# --- When -----------------------------------------------------------------------------------------------


def when(spent: Fraction, rate: Fraction, amount: Fraction, share: Fraction = Fraction(1)) -> Fraction | None:
    """In how many seconds this share of the amount is spent, at so much a second; None: never."""
    left = amount * share - spent
    if left <= 0:
        return Fraction(0)
    return left / rate if rate > 0 else None


def out_of_time(charter: Charter, outcome: Outcome) -> Verdict | None:
    """Work with a purpose whose time limit was reached has ended by its charter: out of time."""
    return Verdict.OUT_OF_TIME if outcome is Outcome.TIMEOUT and charter.purpose else None


# --- Extending ------------------------------------------------------------------------------------------


def extended(charter: Charter, *, budget: str | None = None, until: float | None = None) -> Charter:
    """The charter with another budget (``300 GPUh``, or ``+100 GPUh`` more) and another date."""
    changed = charter
    if budget is not None:
        changed = replace(changed, budget=str(_enlarged(charter.budget, budget)))
    return changed if until is None else replace(changed, until=until)


def _enlarged(before: str | None, text: str) -> Budget:
    more, given = _read(text, _LIKE)
    if not more:
        return given
    if before is None:
        raise BadInput(f"there is no budget yet that {text[:80]!r} could be added to; {_LIKE}")
    had = parse_budget(before)
    if had.unit != given.unit:
        raise BadInput(f"the budget is in {had.unit}; {given} can't be added to {had}")
    return replace(had, amount=had.amount + given.amount)
