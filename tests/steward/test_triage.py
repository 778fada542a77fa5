"""Why did it fail? On logs as they really look, and on facts that no log can overrule."""

import math
from signal import Signals

import pytest
from failed_logs import HARMLESS, LOGS
from hypothesis import given
from hypothesis import strategies as st

from muster.model.events import Outcome
from muster.model.units import GIB, HOUR
from muster.steward.cause import MOST_BYTES, MOST_LINES, Cause, Ending, How, Kind, Told
from muster.steward.faults import Fault, FaultKind
from muster.steward.lastwords import find, last_lines
from muster.steward.triage import triage


def ended(log: str = "", outcome: Outcome | None = Outcome.FAILED, **more: object) -> Ending:
    more.setdefault("exit_code", None if more.get("signal") or outcome is None else 1)
    return Ending(job="7", owner="ana", outcome=outcome, log=last_lines(log.encode()), **more)  # type: ignore[arg-type]


def why(ending: Ending) -> Cause:
    cause = triage(ending)
    assert cause is not None
    return cause


# --- What logs say ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOGS)
def test_a_log_tells_why_and_which_line_says_so(name: str) -> None:
    case = LOGS[name]
    cause = why(ended(case.text, exit_code=case.exit_code))
    assert cause.kind is case.kind, str(cause)
    assert case.shown in cause.evidence.text
    assert cause.evidence.line is not None
    assert case.shown in case.text.split("\n")[cause.evidence.line - 1]
    assert cause.action.endswith(".")


@pytest.mark.parametrize("name", HARMLESS)
def test_words_in_a_harmless_context_say_nothing(name: str) -> None:
    assert why(ended(HARMLESS[name])).kind is Kind.OWN_ERROR


def test_the_line_is_numbered_as_in_the_whole_log() -> None:
    cause = why(ended("a\nKeyError: 'lr'\n", log_first_line=1001))
    assert cause.evidence.line == 1002
    assert str(cause).startswith("its own error (line 1002: KeyError: 'lr'). ")


def test_a_log_whose_beginning_is_not_known_has_no_numbers() -> None:
    assert why(ended("KeyError: 'lr'\n", log_first_line=None)).evidence.line is None


def test_what_was_reported_tells_of_a_loss_that_is_not_a_number() -> None:
    cause = why(ended("bye\n", reported={"step": 3.0, "val_loss": math.nan}))
    assert (cause.kind, cause.evidence.text) == (Kind.NAN, "val_loss was nan when last reported")


def test_a_line_that_names_a_cause_counts_more_than_what_was_reported() -> None:
    cause = why(ended("ModuleNotFoundError: No module named 'x'\n", reported={"loss": math.inf}))
    assert cause.kind is Kind.MISSING_MODULE


def test_without_any_sign_the_exit_code_is_shown() -> None:
    assert str(why(ended("bye\n", exit_code=3, ran_seconds=90.0)).evidence) == "exit code 3 after 1m 30s"
    assert str(why(ended(signal=Signals.SIGSEGV)).evidence) == "signal SIGSEGV"
    assert str(why(ended(signal=1000)).evidence) == "signal 1000"
    assert str(why(ended(exit_code=None)).evidence) == "exit code not known"


def test_a_shell_passes_on_what_its_command_was_killed_by() -> None:
    cause = why(ended("epoch 3\n", exit_code=143))
    assert (cause.kind, cause.evidence.text) == (Kind.KILLED_BY_OTHER, "exit code 143: signal SIGTERM")


# --- Facts --------------------------------------------------------------------------------------------

LIES = "".join(case.text for case in LOGS.values())


def test_what_did_not_fail_is_not_looked_into() -> None:
    assert triage(ended(LIES, Outcome.SUCCEEDED, exit_code=0)) is None
    assert triage(ended(LIES, Outcome.DEPENDENCY_FAILED)) is None


def test_the_kernel_counts_who_it_killed_for_want_of_memory() -> None:
    cause = why(ended(LIES, out_of_memory=2, memory_peak_bytes=4 * GIB, memory_limit_bytes=4 * GIB))
    assert cause.kind is Kind.HOST_OUT_OF_MEMORY
    assert cause.evidence.text == "the kernel killed 2 of its processes for want of memory: 4G of 4G"


def test_without_a_counter_one_who_is_killed_at_its_limit_ran_out_of_memory() -> None:
    near = {"memory_peak_bytes": 4 * GIB - 1, "memory_limit_bytes": 4 * GIB}
    for told in ({"signal": 9}, {"exit_code": 137}):
        assert why(ended(**told, **near)).kind is Kind.HOST_OUT_OF_MEMORY  # type: ignore[arg-type]
        assert why(ended(**told, **near, out_of_memory=0)).kind is Kind.KILLED_BY_OTHER  # type: ignore[arg-type]


def test_a_time_limit_says_what_to_ask_for() -> None:
    cause = why(ended(LIES, Outcome.TIMEOUT, limit_seconds=2 * HOUR, signal=9))
    assert (cause.kind, cause.evidence.text) == (Kind.TIME_LIMIT, "its time limit of 2h was reached")
    assert "--time 3h," in cause.action


def test_who_was_evicted_was_preempted() -> None:
    told = Told(How.EVICTED, "quota: vision takes back what it owns")
    cause = why(ended(LIES, None, told=told))
    assert (cause.kind, cause.evidence.text) == (Kind.PREEMPTED, "quota: vision takes back what it owns")


def test_who_left_without_being_told_was_on_a_node_that_failed() -> None:
    assert why(ended(LIES, None)).kind is Kind.NODE_FAULT
    assert why(ended(LIES, Outcome.NODE_LOST)).kind is Kind.NODE_FAULT


def test_a_stop_is_its_owners_or_somebody_elses() -> None:
    own, other, muster = (Told(How.STOPPED, "stopped", by) for by in ("ana", "root", None))
    assert why(ended(LIES, Outcome.STOPPED, told=own, signal=15)).kind is Kind.KILLED_BY_USER
    cause = why(ended(LIES, Outcome.STOPPED, told=other, signal=15))
    assert (cause.kind, cause.action) == (Kind.KILLED_BY_OTHER, "Ask root before it is run again.")
    assert why(ended(LIES, Outcome.STOPPED, told=muster)).kind is Kind.KILLED_BY_OTHER


def test_who_took_more_gpu_memory_than_granted_is_out_of_gpu_memory() -> None:
    told = Told(How.OVER_GPU_MEMORY, "it took 14G of a GPU, 8G were granted")
    cause = why(ended(LIES, Outcome.STOPPED, told=told, gpu_memory_limit_bytes=8 * GIB))
    assert (cause.kind, cause.limit_bytes) == (Kind.GPU_OUT_OF_MEMORY, 8 * GIB)


def test_what_muster_stopped_for_what_it_did_says_why() -> None:
    told = Told(How.STOPPED, "it has more processes than it asked for")
    cause = why(ended(LIES, told=told))
    assert (cause.kind, cause.evidence.text) == (Kind.KILLED_BY_OTHER, told.because)


def test_hardware_that_failed_under_it_is_to_blame() -> None:
    lost = Fault("a", 2, FaultKind.DEVICE_LOST, 5.0)
    cause = why(ended(LIES, faults=(lost,)))
    assert (cause.kind, cause.evidence.text) == (Kind.GPU_FAULT, "device lost on GPU 2 of a while it ran")
    assert why(ended(LIES, faults=(Fault("a", None, FaultKind.NODE, 5.0),))).kind is Kind.NODE_FAULT


def test_a_driver_error_that_programs_cause_is_not_the_hardwares() -> None:
    astray = Fault("a", 2, FaultKind.XID, 5.0, code=31)
    assert why(ended("KeyError: 1\n", faults=(astray,))).kind is Kind.OWN_ERROR


def test_a_signal_from_outside_is_somebody_elses() -> None:
    cause = why(ended(LIES, signal=9, out_of_memory=0))
    assert (cause.kind, cause.evidence.text) == (Kind.KILLED_BY_OTHER, "signal SIGKILL")


def test_what_could_not_be_executed_is_shown_by_its_line() -> None:
    loader = "./sim: error while loading shared libraries: libgsl.so.27: cannot open shared object file: "
    cause = why(ended(f"{loader}No such file or directory\n", exit_code=127))
    assert (cause.kind, cause.evidence.line) == (Kind.NOT_EXECUTED, 1)
    assert "Install" in cause.action
    assert why(ended(exit_code=126)).evidence.text == "exit code 126"


# --- Hostile logs ---------------------------------------------------------------------------------------


def test_a_huge_line_is_looked_at_in_part() -> None:
    line = "x" * (10 << 20)
    assert find((line,)) is None
    assert why(ended(f"KeyError: {'y' * 5000}\n")).evidence.text.startswith("KeyError: yyy")


def test_evidence_is_short_and_moves_no_cursor() -> None:
    cause = why(ended("ValueError: \x1b[2J\x1b]0;owned\x07\x00" + "z" * 900 + "\n"))
    assert len(cause.evidence.text) <= 240
    assert cause.evidence.text.isprintable()


def test_reasons_that_people_gave_are_cleaned_too() -> None:
    cause = why(ended(outcome=Outcome.STOPPED, told=Told(How.STOPPED, "\x1b[2Jbye" * 99, "eve\n")))
    assert cause.evidence.text.isprintable()
    assert len(cause.evidence.text) <= 240


def test_only_the_end_of_a_log_is_looked_at() -> None:
    raw = b"KeyError: 1\n" + b"ok\n" * 300
    assert len(last_lines(raw)) == MOST_LINES
    assert find(last_lines(raw)) is None
    assert sum(map(len, last_lines(b"a" * (1 << 20)))) == MOST_BYTES


def test_bytes_that_are_no_text_do_no_harm() -> None:
    assert why(Ending(job="7", owner="", outcome=Outcome.FAILED, log=last_lines(bytes(range(256)) * 99)))


@pytest.mark.parametrize(
    "piece",
    [
        "[",
        "(a ",
        "loss",
        "1:",
        " | ",
        "\x1b[",
        "a.",
        "E1111 ",
        "12:12:12",
        "x: line 1: ",
        "(a pid=1",
        "error: ",
        "\r ",
    ],
)
def test_no_line_makes_reading_run_away(piece: str) -> None:
    """What backtracks would take years for these."""
    find((piece * (MOST_BYTES // len(piece)),))
    find((piece * 300,) * MOST_LINES)


_pieces = st.sampled_from(
    [line for case in LOGS.values() for line in case.text.split("\n")]
    + [
        "\r",
        "\x1b[31m",
        "[rank0]: ",
        "ERROR ",
        "loss",
        ": ",
        "nan",
        "(",
        "a" * 3000,
        "\u2028",
        "\ud800",
        " " * 999,
    ]
)
_lines = st.lists(st.lists(_pieces | st.text(max_size=20), max_size=6).map("".join), max_size=30).map(tuple)
_told = st.builds(
    Told, st.sampled_from(How), st.text(max_size=20), st.none() | st.sampled_from(["ana", "bob"])
)
_facts = st.fixed_dictionaries(
    {
        "outcome": st.none() | st.sampled_from(Outcome),
        "exit_code": st.none() | st.integers(0, 255),
        "signal": st.none() | st.integers(0, 70),
        "told": st.none() | _told,
        "out_of_memory": st.none() | st.integers(0, 3),
        "memory_peak_bytes": st.none() | st.integers(0, 1 << 40),
        "memory_limit_bytes": st.none() | st.integers(0, 1 << 40),
        "limit_seconds": st.none() | st.floats(0),
        "ran_seconds": st.none() | st.floats(),
        "log_first_line": st.none() | st.integers(1, 10**9),
        "reported": st.dictionaries(st.text(max_size=5), st.floats(), max_size=3),
    }
)


@given(lines=_lines, facts=_facts)
def test_triage_never_raises_and_always_says_what_to_do(
    lines: tuple[str, ...], facts: dict[str, object]
) -> None:
    cause = triage(Ending(job="7", owner="ana", log=lines, **facts))  # type: ignore[arg-type]
    if cause is None:
        assert facts["outcome"] in (Outcome.SUCCEEDED, Outcome.DEPENDENCY_FAILED)
    else:
        assert cause.evidence.text
        assert cause.action.endswith(".")


def decides(facts: dict[str, object]) -> bool:
    """Whether a fact decides, so that no text may."""
    outcome = facts["outcome"]
    if outcome is not Outcome.FAILED or facts["told"] is not None or facts["out_of_memory"]:
        return True
    return facts["signal"] in (1, 2, 3, 9, 15) or facts["exit_code"] in (126, 127)


@given(lines=_lines, facts=_facts.filter(decides))
def test_where_a_fact_decides_no_text_changes_the_cause(
    lines: tuple[str, ...], facts: dict[str, object]
) -> None:
    with_log = triage(Ending(job="7", owner="ana", log=lines, **facts))  # type: ignore[arg-type]
    without = triage(Ending(job="7", owner="ana", **facts))  # type: ignore[arg-type]
    assert (with_log and with_log.kind) == (without and without.kind)
