"""In a terminal ``muster submit`` asks for what is missing; elsewhere it follows the policy."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from terminal import CTRL_C, CTRL_D, Terminal

from servers import Server

TEAMS = '[team.usual]\n[team.careful]\nrequire = "strict"\n[team.easy]\nrequire = "off"\n'
PURPOSE = "Does 8B beat the 3B baseline on the held-out set?"
WHAT_FOR = "In one sentence, what will you know when this is done?"
WORKED, GIVE_UP = "How will you know it worked?", "And when to give up?"


@pytest.fixture(scope="module")
def serving() -> Iterator[Server]:
    server = Server()
    server.home.configuration.write_text(TEAMS)
    with server:
        yield server


class Desk:
    """A person who has a terminal, and a folder for what is remembered."""

    def __init__(self, server: Server, state: Path) -> None:
        self._server = server
        self.state = state
        self.environment = {"MUSTER_HOME": str(server.home.path), "XDG_STATE_HOME": str(state)}

    def muster(self, *words: str, **more: str) -> Terminal:
        return Terminal(*words, **{**self.environment, **more})

    def submit(self, *words: str, team: str = "usual", **more: str) -> Terminal:
        return self.muster("submit", "--team", team, *words, **more)

    def queued(self) -> int:
        with self._server.client() as client:
            return len(client.jobs(all=True, limit=0))

    def last(self) -> dict[str, Any]:
        """The charter of the latest job, as it is written down."""
        with self._server.client() as client:
            jobs = client.jobs(all=True, limit=0)
        return max(jobs, key=lambda job: int(job["id"].partition("_")[0]))


@pytest.fixture
def desk(serving: Server, tmp_path: Path) -> Desk:
    return Desk(serving, tmp_path / "state")


# --- The three questions ----------------------------------------------------------------------------


def test_three_short_questions_make_a_charter(desk: Desk) -> None:
    shown = desk.submit("--time", "8h", "--name", "finetune-8b", "--", "true")
    shown.sees("No purpose given. " + WHAT_FOR, "> ").types(PURPOSE)
    shown.sees("How will you know it worked? (e.g. val_acc >= 0.92; Enter to skip)\n> ").types(
        "val_acc >= 0.92"
    )
    shown.sees("And when to give up? (default: 8h, the time limit)\n> ").types("val_acc < 0.5 after 2h")
    shown.sees("finetune-8b")
    assert shown.ends() == 0
    assert desk.last()["purpose"] == PURPOSE
    assert "undefended" not in shown.shown


def test_what_was_said_is_not_asked(desk: Desk) -> None:
    shown = desk.submit("--for", PURPOSE, "--success", "acc > 0.9", "--", "true")
    assert shown.ends() == 0
    assert "?" not in shown.shown.replace("Why?", "")


def test_with_a_purpose_only_the_end_is_asked_for(desk: Desk) -> None:
    shown = desk.submit("--for", PURPOSE, "--", "true")
    shown.sees(WORKED).types("")
    shown.sees(GIVE_UP).types("90m")
    assert shown.ends() == 0
    assert WHAT_FOR not in shown.shown
    assert desk.last()["time_limit_seconds"] == 5400


@pytest.mark.parametrize("answer", ["200 GPUh", "2099-12-01", "loss is nan"])
def test_giving_up_may_be_a_budget_a_date_or_a_condition(desk: Desk, answer: str) -> None:
    shown = desk.submit("--for", PURPOSE, "--", "true")
    shown.sees(WORKED).types("")
    shown.sees(GIVE_UP).types(answer)
    assert shown.ends() == 0
    assert "undefended" not in shown.shown


def test_enter_at_the_first_question_skips_the_rest(desk: Desk) -> None:
    shown = desk.submit("--", "true")
    shown.sees(WHAT_FOR + " (Enter to skip)").types("")
    assert shown.ends() == 0
    assert WORKED not in shown.shown
    assert "the next review lists it as undefended" in shown.shown


def test_an_answer_that_says_nothing_is_asked_for_again_kindly(desk: Desk) -> None:
    shown = desk.submit("--name", "whisper", "--time", "1h", "--", "true")
    shown.sees(WHAT_FOR).types("test test")
    shown.sees("'test test' is too little", '"Does whisper beat the baseline', WHAT_FOR).types(
        "Is it better in Czech?"
    )
    shown.sees(WORKED).types("wer >> 3")
    shown.sees("wer >> 3", WORKED).types("wer < 0.08")
    shown.sees(GIVE_UP).types("never, I hope")
    shown.sees("never, I hope", GIVE_UP).types("")
    assert shown.ends() == 0
    assert desk.last()["purpose"] == "Is it better in Czech?"


def test_what_is_wrong_with_a_condition_is_pointed_at_and_an_end_may_be_more_than_one(desk: Desk) -> None:
    shown = desk.submit("--for", PURPOSE, "--", "true")
    shown.sees(WORKED).types("wer >> 3")
    shown.sees("\n  wer >> 3", "\n       ^", WORKED).types("wer < 0.08")
    shown.sees(GIVE_UP).types("tomorrow")
    shown.sees("'tomorrow' is neither a condition nor a time like 8h, a date", GIVE_UP).types("+7d")
    assert shown.ends() == 0
    assert desk.last()["until"] is not None


def test_arrow_keys_and_other_scripts_do_no_harm(desk: Desk) -> None:
    shown = desk.submit("--time", "1h", "--", "true")
    shown.sees(WHAT_FOR).types("Ist es schn\x1b[Deller?")
    shown.sees("printable", WHAT_FOR).types("新模型比旧的好吗？")
    shown.sees(WORKED).types("")
    shown.sees(GIVE_UP).types("")
    assert shown.ends() == 0
    assert desk.last()["purpose"] == "新模型比旧的好吗？"


# --- Leaving ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1])
def test_ctrl_c_leaves_and_nothing_is_submitted(desk: Desk, after: int) -> None:
    before = desk.queued()
    shown = desk.submit("--", "true").sees(WHAT_FOR)
    if after:
        shown.types(PURPOSE).sees(WORKED)
    shown.types(CTRL_C)
    assert shown.ends() == 130
    assert "Traceback" not in shown.shown
    assert desk.queued() == before


def test_ctrl_d_skips_what_is_left(desk: Desk) -> None:
    shown = desk.submit("--", "true").sees(WHAT_FOR).types(PURPOSE)
    shown.sees(WORKED).types(CTRL_D)
    assert shown.ends() == 0
    assert GIVE_UP not in shown.shown
    assert desk.last()["purpose"] == PURPOSE


# --- Strict and off ---------------------------------------------------------------------------------


def test_where_it_is_strict_what_is_needed_can_t_be_skipped(desk: Desk) -> None:
    shown = desk.submit("--", "true", team="careful")
    shown.sees(WHAT_FOR + "\n> ").types("")
    shown.sees("nothing starts without a purpose", WHAT_FOR).types(PURPOSE)
    shown.sees(WORKED).types("")
    shown.sees("200 GPUh)\n> ").types("")
    shown.sees("nothing starts without an end", GIVE_UP).types("30m")
    assert shown.ends() == 0
    assert desk.last()["time_limit_seconds"] == 1800


def test_where_it_is_strict_no_more_answers_mean_a_refusal(desk: Desk) -> None:
    before = desk.queued()
    shown = desk.submit("--", "true", team="careful").sees(WHAT_FOR).types(CTRL_D)
    assert shown.ends() == 2
    assert "nothing starts here without a purpose and an end; add --for" in shown.shown
    assert desk.queued() == before


def test_where_it_is_off_nothing_is_asked_and_nothing_said(desk: Desk) -> None:
    shown = desk.submit("--for", "test", "--", "true", team="easy")
    assert shown.ends() == 0
    assert len(shown.shown.splitlines()) == 1


def test_what_is_wrong_on_the_command_line_is_said_before_any_question(desk: Desk) -> None:
    for words in (("--for", "asdf"), ("--success", "a >>= 1"), ("--mem", "lots"), ("--owner", "nobody-such")):
        shown = desk.submit(*words, "--", "true")
        assert shown.ends() == 2
        assert "> \n" not in shown.shown
        assert WHAT_FOR not in shown.shown


# --- Where nobody is asked --------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("-o", "name"), ("-o", "json"), ("--dry-run",), ("--each", "lines")])
def test_programs_and_lists_are_not_asked(desk: Desk, words: tuple[str, ...]) -> None:
    Path("lines").write_text("true\n")
    shown = desk.submit(*words, *([] if "--each" in words else ["--", "true"]))
    assert shown.ends() == 0
    assert WHAT_FOR not in shown.shown


def test_who_wants_no_questions_says_so(desk: Desk) -> None:
    shown = desk.submit("--", "true", MUSTER_ASK="never")
    assert shown.ends() == 0
    assert WHAT_FOR not in shown.shown


def test_a_script_follows_the_policy(serving: Server) -> None:
    warned = serving.muster("submit", "--team", "usual", "--", "true")
    assert (warned.returncode, warned.stderr.count("\n")) == (0, 1)
    assert "no purpose and no end" in warned.stderr
    refused = serving.muster("submit", "--team", "careful", "--", "true")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    enough = serving.muster("submit", "--team", "careful", "--for", PURPOSE, "--time", "1h", "--", "true")
    assert (enough.returncode, enough.stderr) == (0, "")
    assert serving.muster("submit", "--team", "easy", "--", "true").stderr == ""


def test_many_at_once_are_warned_of_once_and_refused_together(serving: Server) -> None:
    (serving.work / "lines").write_text("true\nfalse\nsleep 0\n")
    many = serving.muster("submit", "--team", "usual", "--each", "lines")
    assert (many.returncode, many.stderr.count("undefended")) == (0, 1)
    array = serving.muster("submit", "--team", "usual", "--array", "1-50", "--", "true")
    assert array.stderr.count("undefended") == 1
    none = serving.muster("submit", "--team", "careful", "--each", "lines")
    assert none.returncode == 2
    assert "none was submitted" in none.stderr


def test_questions_load_little(desk: Desk) -> None:
    shown = desk.submit("--", "true", PYTHONPROFILEIMPORTTIME="1")
    shown.sees(WHAT_FOR).types(PURPOSE).sees(WORKED).types("").sees(GIVE_UP).types("")
    assert shown.ends() == 0
    loaded = {line.rpartition("|")[2].strip() for line in shown.shown.splitlines()}
    assert "muster.cli.questions" in loaded
    heavy = {
        "readline",
        "msgspec",
        "numpy",
        "rich",
        "yaml",
        "muster.steward",
        "muster.application",
        "tempfile",
    }
    assert loaded & heavy == set()


# --- Running ----------------------------------------------------------------------------------------


def test_a_quick_run_is_not_nagged(desk: Desk) -> None:
    shown = desk.muster("run", "--team", "usual", "--time", "10m", "--", "echo", "checked")
    assert shown.ends() == 0
    assert shown.shown == "checked\n"


def test_a_long_run_is_asked_for(desk: Desk) -> None:
    shown = desk.muster("run", "--team", "usual", "--time", "2h", "--", "echo", "checked")
    shown.sees(WHAT_FOR).types("")
    shown.sees("checked")
    assert shown.ends() == 0


def test_a_quick_run_is_asked_for_where_it_is_strict(desk: Desk) -> None:
    shown = desk.muster("run", "--team", "careful", "--", "echo", "checked")
    shown.sees(WHAT_FOR).types(CTRL_C)
    assert shown.ends() == 130


# --- The last answers -------------------------------------------------------------------------------


def test_the_last_answers_for_the_same_job_are_offered(desk: Desk) -> None:
    first = desk.submit("--name", "fit", "--", "true").sees(WHAT_FOR).types(PURPOSE)
    first.sees(WORKED).types("acc >= 0.9").sees(GIVE_UP).types("2h")
    assert first.ends() == 0
    again = desk.submit("--name", "fit", "--", "true").sees(WHAT_FOR, f"[{PURPOSE}] > ").types("")
    again.sees(WORKED, "[acc >= 0.9] > ").types("-")
    again.sees(GIVE_UP, "[2h] > ").types("3h")
    assert again.ends() == 0
    assert (desk.last()["purpose"], desk.last()["time_limit_seconds"]) == (PURPOSE, 3 * 3600)
    other = desk.submit("--name", "other", "--", "true").sees(WHAT_FOR + " (Enter to skip)\n> ").types(CTRL_C)
    assert other.ends() == 130


def test_answers_are_kept_for_nobody_else_and_only_of_what_was_submitted(desk: Desk) -> None:
    kept = desk.state / "muster" / "answers.json"
    desk.submit("--", "true").sees(WHAT_FOR).types(PURPOSE).sees(WORKED).types(CTRL_C).ends()
    assert not kept.exists()
    desk.submit("--time", "1h", "--", "true").sees(WHAT_FOR).types(PURPOSE).sees(WORKED).types(CTRL_D).ends()
    assert json.loads(kept.read_text()) == {"true": {"for": PURPOSE}}
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert os.listdir(kept.parent) == ["answers.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"true": 3}', '{"true": {"for": 7}}', "[" * 100_000])
def test_a_broken_memory_is_no_memory(desk: Desk, text: str) -> None:
    kept = desk.state / "muster" / "answers.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(text)
    shown = desk.submit("--", "true").sees(WHAT_FOR + " (Enter to skip)").types("")
    assert shown.ends() == 0
