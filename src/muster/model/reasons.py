"""Why not: typed answers, each of which can say itself in a sentence.

Two kinds of no. *Infeasible*: with this inventory, never. *Insufficient*: not now. A Wait lists a job's
reasons, the deciding one first.
"""

import msgspec

from muster.model.job import JobId
from muster.model.node import Health
from muster.model.units import MILLI, show_bytes, show_count, show_milli, show_seconds


class Reason(msgspec.Struct, frozen=True, tag=True):
    """A reason for a no. ``infeasible`` ones can never go away by themselves."""

    @property
    def infeasible(self) -> bool:
        return False

    def sentence(self) -> str:
        raise NotImplementedError

    def action(self) -> str | None:
        """What a person can do about it; None if only waiting helps."""
        return None

    def sentence_of(self, job: JobId) -> str:
        """With the job's own id where a command has one."""
        return _named(self.sentence(), job)

    def action_of(self, job: JobId) -> str | None:
        action = self.action()
        return None if action is None else _named(action, job)


def _named(text: str, job: JobId) -> str:
    """What people have written is left alone."""
    return text.replace("muster release ID", f"muster release {job}")


class Infeasible(Reason, frozen=True):
    @property
    def infeasible(self) -> bool:
        return True


class TooLarge(Infeasible, frozen=True):
    """No node has as much of ``what``, even empty."""

    what: str
    asked: int
    most: int
    node: str | None

    def sentence(self) -> str:
        asked, most = show_amount(self.what, self.asked), show_amount(self.what, self.most)
        where = f", on {self.node}" if self.node else ""
        hint = ""
        if self.what == "GPUs" and self.most:
            parts = -(-self.asked // self.most)
            hint = f". Did you mean --gpus {min(self.asked, self.most)} --nodes {parts}?"
        return f"can never run: asks {asked} on one node; the most is {most}{where}{hint}"

    def action(self) -> str:
        return f"ask for at most {show_amount(self.what, self.most)} on one node, or split it: --nodes"


class TooLittleGpuMemory(Infeasible, frozen=True):
    """No GPU has as much memory."""

    asked_bytes: int
    most_bytes: int

    def sentence(self) -> str:
        most = (
            f"the largest has {show_bytes(self.most_bytes)}" if self.most_bytes else "none says what it has"
        )
        return f"can never run: asks {show_bytes(self.asked_bytes)} of GPU memory; {most}"

    def action(self) -> str:
        return f"ask for at most {show_bytes(self.most_bytes)} of GPU memory"


class NoSuchModel(Infeasible, frozen=True):
    asked: tuple[str, ...]
    known: tuple[str, ...]

    def sentence(self) -> str:
        there = ", ".join(self.known) or "none"
        return f"can never run: asks for a GPU of model {' or '.join(self.asked)}; there is {there}"

    def action(self) -> str:
        return "leave the model open: --gpu-model any"


class NoSuchLabel(Infeasible, frozen=True):
    asked: tuple[str, ...]

    def sentence(self) -> str:
        return f"can never run: no node carries the label {' and '.join(self.asked)}"

    def action(self) -> str:
        return "leave the label out; muster node -o wide shows those there are"


class NoSuchCombination(Infeasible, frozen=True):
    """Each thing asked for exists, but never on one node."""

    asked: str

    def sentence(self) -> str:
        return f"can never run: no node has all of {self.asked} at once"

    def action(self) -> str:
        return "ask for less of one of them; muster node shows what there is"


class GangTooLarge(Infeasible, frozen=True):
    asked: int
    most: int
    together: str

    def sentence(self) -> str:
        where = {"node": "one node", "rack": "one rack", "switch": "one switch"}.get(
            self.together, "the cluster"
        )
        return f"can never run: {where} has room for {self.most} of the {self.asked} parts, even empty"

    def action(self) -> str:
        apart = "" if self.together == "anywhere" else ", or let them sit apart: --together anywhere"
        return f"ask for at most {show_count(self.most, 'part')}{apart}"


class OverLimit(Infeasible, frozen=True):
    """The team may never hold this much: its quota and what it may borrow end below."""

    team: str
    what: str
    asked: int
    most: int

    def sentence(self) -> str:
        return (
            f"can never run: asks {show_amount(self.what, self.asked)}; team {self.team} may hold "
            f"{show_amount(self.what, self.most)} at most, borrowing included"
        )

    def action(self) -> str:
        most = show_amount(self.what, self.most)
        return f"ask for at most {most}, or ask for a larger quota of team {self.team}"


class NoRoom(Reason, frozen=True):
    """Not enough is free on any one node."""

    what: str
    asked: int
    most: int
    node: str | None

    def sentence(self) -> str:
        asked, most = show_amount(self.what, self.asked), show_amount(self.what, self.most)
        if not self.most:
            return f"no node has {asked} free"
        return f"no node has {asked} free together (the most is {most}, on {self.node})"

    def action(self) -> str | None:
        return f"ask for at most {show_amount(self.what, self.most)}" if self.most else None


class NoRoomTogether(Reason, frozen=True):
    """Parts fit, but not all of them, or not close enough."""

    asked: int
    most: int
    together: str

    def sentence(self) -> str:
        where = {"node": " on one node", "rack": " in one rack", "switch": " below one switch"}.get(
            self.together, ""
        )
        return f"only {self.most} of the {self.asked} parts fit{where} now"

    def action(self) -> str | None:
        if self.together != "anywhere":
            return "let the parts sit apart: --together anywhere"
        return f"ask for {show_count(self.most, 'part')}: --nodes {self.most}" if self.most else None


class Out(msgspec.Struct, frozen=True):
    """A node, or one GPU of it, on which nothing new starts."""

    node: str
    device: int | None
    health: Health
    because: str = ""

    def sentence(self) -> str:
        what = self.node if self.device is None else f"GPU {self.device} of {self.node}"
        return f"{what} is {self.health.value}" + (f" ({self.because})" if self.because else "")


class OutOfService(Reason, frozen=True):
    """Were nothing running, it would not fit either, on what is neither drained nor down."""

    out: tuple[Out, ...]  # what would do, were it back; the first few of it
    more: int  # and how much more
    short: Reason  # what is left lacks this

    def sentence(self) -> str:
        said = ", ".join(one.sentence() for one in self.out)
        more = f", and {self.more} more" if self.more else ""
        return f"only what is out of service could take it: {said}{more}"

    def action(self) -> str:
        drained = next((one for one in self.out if one.health is Health.DRAINED), None)
        if drained is None:
            return "see what is down: muster node"
        gpu = "" if drained.device is None else f" --gpu {drained.device}"
        return f"bring it back, as an admin: muster node resume {drained.node}{gpu}"


class QuotaReached(Reason, frozen=True):
    team: str
    what: str
    asked: int
    left: int

    def sentence(self) -> str:
        return (
            f"team {self.team} has {show_amount(self.what, self.left)} left of its quota and what it "
            f"may borrow; this asks {show_amount(self.what, self.asked)}"
        )

    def action(self) -> str:
        return f"stop a job of team {self.team} that is no longer needed, or ask for less"


class BehindPromise(Reason, frozen=True):
    """It would delay a job that was promised room."""

    promised: JobId
    in_seconds: float
    lasts_seconds: float

    def sentence(self) -> str:
        return (
            f"would delay job {self.promised}, which was promised room in "
            f"{show_seconds(self.in_seconds)}; this may take {show_seconds(self.lasts_seconds)}"
        )

    def action(self) -> str:
        return f"ask for less time than {show_seconds(self.in_seconds)}, to be gone before it starts: --time"


class BehindOthers(Reason, frozen=True):
    """The order is strict, and a job in front does not fit yet."""

    job: JobId

    def sentence(self) -> str:
        return f"waits behind job {self.job}, and the policy lets nobody pass"


class MakingRoom(Reason, frozen=True):
    """Others were told to leave for it."""

    victims: tuple[JobId, ...]

    def sentence(self) -> str:
        return f"room is being made: {', '.join(self.victims)} will leave"


class NotYourTurn(Reason, frozen=True):
    """Others are ahead in the time-sharing order."""

    ahead: int

    def sentence(self) -> str:
        ahead = "1 job that has" if self.ahead == 1 else f"{self.ahead} jobs that have"
        goes = "goes" if self.ahead == 1 else "go"
        return f"{ahead} had less of the cluster {goes} first"


class NotLookedAt(Reason, frozen=True):
    """The cycle's depth was reached before this job's turn."""

    depth: int

    def sentence(self) -> str:
        return f"more than {self.depth} jobs are ahead in the queue"


class HeldBack(Reason, frozen=True):
    """By a person; or by the steward, who says why and what to do."""

    because: str = ""

    def sentence(self) -> str:
        return self.because or "held; release it with: muster release ID"

    def action(self) -> str | None:
        return None if self.because else "release it: muster release ID"


class NotBefore(Reason, frozen=True):
    begin_at: float
    in_seconds: float

    def sentence(self) -> str:
        return f"asked to begin in {show_seconds(self.in_seconds)}"


class DependsOn(Reason, frozen=True):
    jobs: tuple[JobId, ...]

    def sentence(self) -> str:
        return f"waits for {', '.join(self.jobs)} to end"

    def action(self) -> str:
        return f"see what that waits for: muster why {self.jobs[0]}"


class ArrayFull(Reason, frozen=True):
    array: str
    most_at_once: int

    def sentence(self) -> str:
        return f"array {self.array} runs {self.most_at_once} at once, as asked"

    def action(self) -> str:
        return f"submit it with a larger number after %, if more than {self.most_at_once} may run at once"


def show_amount(what: str, amount: int) -> str:
    """An amount in the unit people use for it."""
    if what in ("memory", "disk", "GPU memory"):
        return f"{show_bytes(amount)} {what}"
    if what == "GPU share":
        return f"{show_milli(amount)} {what}"
    if what == "cpus":
        return show_count(amount / MILLI, "cpu")
    return show_count(amount / MILLI if what == "GPUs in milli" else amount, "GPU")
