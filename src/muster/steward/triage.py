"""Why did it fail? Facts first, then what the log says.

Facts are what the kernel, the engine and the meters know: who told it to end, the time limit, the counter of
kills for want of memory, a device that was lost, the signal. Where one of them decides, the log may
illustrate it and no more. An exit code is weaker than what the log says, except for the two by which shells
say that nothing was executed. Without any of it, it is the program's own error, shown by its last exception.
"""

import math
from collections.abc import Callable
from signal import Signals

from muster.model.events import Outcome
from muster.model.units import show_bytes, show_seconds
from muster.steward.cause import Cause, Ending, Evidence, How, Kind
from muster.steward.humane import flags, seconds_up
from muster.steward.lastwords import Found, find
from muster.steward.signs import clean
from muster.steward.words import Weight

_FROM_OUTSIDE = frozenset({Signals.SIGKILL, Signals.SIGTERM, Signals.SIGINT, Signals.SIGHUP, Signals.SIGQUIT})
_NOT_EXECUTED = (126, 127)  # by which shells, and the keeper, say that they could not
_SIGNAL_CODES = 128  # a shell adds the signal that its last command died of
_AT_LIMIT = 0.97  # of memory: who is killed here was killed for it
_LONGEST_EVIDENCE = 240
_LONGER = 1.5  # what to ask for after a time limit


def triage(ending: Ending) -> Cause | None:
    """Why the attempt failed; None if it did not, or never ran."""
    if ending.outcome in (Outcome.SUCCEEDED, Outcome.DEPENDENCY_FAILED):
        return None
    found = find(ending.log)
    for fact in _FACTS:
        if (cause := fact(ending, found)) is not None:
            return cause
    return _by_log(ending, found)


# --- Facts, the first that decides -----------------------------------------------------------------


def _evicted(ending: Ending, _: Found | None) -> Cause | None:
    told = ending.told
    if told is None or told.how is not How.EVICTED:
        return None
    action = "Nothing to do: it waits again, and goes on where it last saved its work."
    return Cause(Kind.PREEMPTED, Evidence(_said(told.because)), action)


def _lost(ending: Ending, _: Found | None) -> Cause | None:
    """Nobody told it to leave, and nobody saw it end."""
    if ending.outcome is not Outcome.NODE_LOST and not (ending.outcome is None and ending.told is None):
        return None
    return Cause(Kind.NODE_FAULT, Evidence("its node was lost"), "Nothing to do: it is run again elsewhere.")


def _out_of_time(ending: Ending, _: Found | None) -> Cause | None:
    if ending.outcome is not Outcome.TIMEOUT:
        return None
    limit = ending.limit_seconds
    said, more = "its time limit was reached", "--time"
    if limit is not None and math.isfinite(limit):
        said = f"its time limit of {show_seconds(limit)} was reached"
        more = flags(seconds=seconds_up(limit * _LONGER))
    action = f"Ask for more time with {more}, and save checkpoints so that nothing is lost."
    return Cause(Kind.TIME_LIMIT, Evidence(said), action)


def _stopped(ending: Ending, _: Found | None) -> Cause | None:
    told = ending.told
    if told is not None and told.how is How.OVER_GPU_MEMORY:
        return _gpu_memory(ending, Evidence(_said(told.because)))
    if ending.outcome is not Outcome.STOPPED:
        return None
    if told is None:
        return Cause(Kind.KILLED_BY_OTHER, Evidence("it was told to end"), "Ask who looks after the node.")
    by_owner = told.by is not None and told.by == ending.owner
    kind = Kind.KILLED_BY_USER if by_owner else Kind.KILLED_BY_OTHER
    ask = f"Ask {_name(told.by)} before it is run again."
    action = "Nothing to do: its owner ended it." if by_owner else ask
    return Cause(kind, Evidence(_said(told.because)), action)


def _out_of_memory(ending: Ending, _: Found | None) -> Cause | None:
    if ending.out_of_memory:
        times = f"{ending.out_of_memory} of its processes" if ending.out_of_memory > 1 else "a process of it"
        return _host_memory(ending, f"the kernel killed {times} for want of memory")
    if ending.outcome is Outcome.OUT_OF_MEMORY:
        return _host_memory(ending, "it used more memory than it had asked for")
    if ending.out_of_memory is None and _was_killed(ending) and _is_at_limit(ending):
        return _host_memory(ending, "it was killed when its memory was at the limit")
    return None


def _told_otherwise(ending: Ending, _: Found | None) -> Cause | None:
    """Stopped by Muster for what it did, such as too many processes."""
    told = ending.told
    if told is None:
        return None
    action = "Change what the reason says, or ask for more of it."
    return Cause(Kind.KILLED_BY_OTHER, Evidence(_said(told.because)), action)


def _faulty(ending: Ending, _: Found | None) -> Cause | None:
    """Hardware failed under it."""
    for fault in ending.faults:
        if not fault.is_hardware:
            continue
        if fault.device is None:
            evidence = Evidence(f"{fault} on {fault.node} while it ran")
            return Cause(Kind.NODE_FAULT, evidence, "Nothing to do: it is run again elsewhere.")
        evidence = Evidence(f"{fault} on GPU {fault.device} of {fault.node} while it ran")
        action = "Nothing is wrong with the job: it is run again on another GPU."
        return Cause(Kind.GPU_FAULT, evidence, action)
    return None


def _not_executed(ending: Ending, found: Found | None) -> Cause | None:
    if ending.exit_code not in _NOT_EXECUTED:
        return None
    action = "Check the command's name, its first line and that it may be executed on the node."
    if found is not None and found.sign.kind in (Kind.MISSING_FILE, Kind.MISSING_MODULE):
        action = found.sign.action  # such as a library that the loader did not find
    if found is not None:
        return Cause(Kind.NOT_EXECUTED, _line(ending, found), action)
    return Cause(Kind.NOT_EXECUTED, Evidence(f"exit code {ending.exit_code}"), action)


def _killed(ending: Ending, _: Found | None) -> Cause | None:
    if ending.signal not in _FROM_OUTSIDE:
        return None
    action = "Ask who looks after the node: Muster did not send it."
    return Cause(Kind.KILLED_BY_OTHER, Evidence(_signal_name(ending.signal)), action)


_FACTS: tuple[Callable[[Ending, Found | None], Cause | None], ...] = (
    _evicted,
    _lost,
    _out_of_time,
    _stopped,
    _out_of_memory,
    _told_otherwise,
    _faulty,
    _not_executed,
    _killed,
)


# --- What the log says -------------------------------------------------------------------------------


def _by_log(ending: Ending, found: Found | None) -> Cause:
    """No fact has decided: the line that says why, the last values that it reported, its exit code."""
    if found is not None and found.sign.kind is not Kind.OWN_ERROR:
        return _of_line(ending, found)
    if (name := _not_a_number(ending)) is not None:
        action = "Lower the learning rate or clip gradients; another try ends the same."
        return Cause(Kind.NAN, Evidence(f"{name} was {ending.reported[name]} when last reported"), action)
    if found is not None and found.sign.weight is not Weight.ECHO:
        return _of_line(ending, found)
    return _by_exit_code(ending) or (
        Cause(Kind.OWN_ERROR, Evidence(_exit(ending)), "Look at the end of its log.")
        if found is None
        else _of_line(ending, found)
    )


def _by_exit_code(ending: Ending) -> Cause | None:
    """Shells pass on the signal that their last command died of."""
    code = ending.exit_code
    if code is None or code - _SIGNAL_CODES not in _FROM_OUTSIDE:
        return None
    evidence = Evidence(f"exit code {code}: {_signal_name(code - _SIGNAL_CODES)}")
    return Cause(Kind.KILLED_BY_OTHER, evidence, "Ask who looks after the node.")


def _of_line(ending: Ending, found: Found) -> Cause:
    evidence = _line(ending, found)
    if found.sign.kind is Kind.HOST_OUT_OF_MEMORY:
        peak, limit = ending.memory_peak_bytes, ending.memory_limit_bytes
        return Cause(found.sign.kind, evidence, found.sign.action, peak, limit)
    if found.sign.kind is Kind.GPU_OUT_OF_MEMORY:
        return _gpu_memory(ending, evidence, found.sign.action)
    return Cause(found.sign.kind, evidence, found.sign.action)


def _line(ending: Ending, found: Found) -> Evidence:
    first = ending.log_first_line
    said = clean(found.text.strip(), _LONGEST_EVIDENCE)
    return Evidence(said, None if first is None else first + found.at)


def _not_a_number(ending: Ending) -> str | None:
    return next((name for name, value in ending.reported.items() if not math.isfinite(value)), None)


# --- Small things --------------------------------------------------------------------------------------


def _host_memory(ending: Ending, said: str) -> Cause:
    peak, limit = ending.memory_peak_bytes, ending.memory_limit_bytes
    if peak is not None and limit:
        said += f": {show_bytes(peak)} of {show_bytes(limit)}"
    action = "Ask for more memory with --mem, or load less at once."
    return Cause(Kind.HOST_OUT_OF_MEMORY, Evidence(said), action, peak, limit)


def _gpu_memory(ending: Ending, evidence: Evidence, action: str = "Ask for more with --gpu-memory.") -> Cause:
    peak, limit = ending.gpu_memory_peak_bytes, ending.gpu_memory_limit_bytes
    return Cause(Kind.GPU_OUT_OF_MEMORY, evidence, action, peak, limit)


def _was_killed(ending: Ending) -> bool:
    return ending.signal == Signals.SIGKILL or ending.exit_code == _SIGNAL_CODES + Signals.SIGKILL


def _is_at_limit(ending: Ending) -> bool:
    peak, limit = ending.memory_peak_bytes, ending.memory_limit_bytes
    return bool(peak is not None and limit and peak >= _AT_LIMIT * limit)


def _exit(ending: Ending) -> str:
    ran = ending.ran_seconds
    after = f" after {show_seconds(ran)}" if ran is not None and math.isfinite(ran) else ""
    if ending.signal is not None:
        return _signal_name(ending.signal) + after
    return f"exit code {'not known' if ending.exit_code is None else ending.exit_code}{after}"


def _signal_name(number: int | None) -> str:
    try:
        return f"signal {Signals(number or 0).name}"
    except ValueError:
        return f"signal {number}"


def _name(person: str | None) -> str:
    return clean(person, 80) if person else "who looks after Muster"


def _said(because: str) -> str:
    return clean(because.strip(), _LONGEST_EVIDENCE) or "it was told to end"
