"""What has happened to somebody's work since they last looked, in one sentence."""

from collections.abc import Sequence

import msgspec

from muster.model.charter import Verdict
from muster.model.events import Outcome
from muster.model.units import HOUR

# In the order in which they are told.
_WORDS = {
    Verdict.WON.value: "won",
    Verdict.LOST.value: "lost",
    Verdict.OUT_OF_BUDGET.value: "out of budget",
    Verdict.OUT_OF_TIME.value: "out of time",
    Verdict.UNDEFENDED.value: "undefended",
    Outcome.SUCCEEDED.value: "succeeded",
    Outcome.FAILED.value: "failed",
    Outcome.OUT_OF_MEMORY.value: "out of memory",
    Outcome.TIMEOUT.value: "at the time limit",
    Outcome.NODE_LOST.value: "lost with the node",
    Outcome.DEPENDENCY_FAILED.value: "never started, after what failed",
    Outcome.STOPPED.value: "stopped",
}
_MOST_CHARACTERS = 160  # of a reason


class Ended(msgspec.Struct, frozen=True):
    """A job that has ended."""

    outcome: Outcome
    verdict: Verdict | None = None
    reason: str = ""
    gpus: float = 0.0
    ran_seconds: float | None = None
    limit_seconds: float | None = None

    @property
    def how(self) -> str:
        return self.outcome.value if self.verdict is None else self.verdict.value

    @property
    def unspent_gpu_seconds(self) -> float:
        """What its charter has saved: the rest of its time limit, on its GPUs."""
        if self.verdict is None or self.ran_seconds is None or self.limit_seconds is None:
            return 0.0
        return self.gpus * max(0.0, self.limit_seconds - self.ran_seconds)


def in_a_sentence(ended: Sequence[Ended], mended: Sequence[str]) -> str:
    """``2 jobs won, 1 lost (val_loss stalled 90 min; 31 GPU·h not spent)``; empty if there is nothing."""
    said: list[str] = []
    for how, word in _WORDS.items():
        some = [one for one in ended if one.how == how]
        if some:
            job = "" if said else " job" if len(some) == 1 else " jobs"
            said.append(f"{len(some)}{job} {word}{_details(some)}")
    if mended:
        only = f" ({mended[0]})" if len(mended) == 1 else ""
        said.append(f"{len(mended)} retried by {'itself' if len(mended) == 1 else 'themselves'}{only}")
    return ", ".join(said)


def _details(some: Sequence[Ended]) -> str:
    said = []
    if len(some) == 1 and some[0].outcome is not Outcome.SUCCEEDED and some[0].reason:
        said.append(_shortened(some[0].reason))
    hours = sum(one.unspent_gpu_seconds for one in some) / HOUR
    if hours >= 0.05:
        said.append(f"{hours:,.0f} GPU·h not spent" if hours >= 10 else f"{hours:.1f} GPU·h not spent")
    return f" ({'; '.join(said)})" if said else ""


def _shortened(reason: str) -> str:
    return reason if len(reason) <= _MOST_CHARACTERS else reason[: _MOST_CHARACTERS - 1] + "…"
