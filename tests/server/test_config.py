"""muster.toml: what it says, and what is refused on which line."""

import os
import re
from datetime import date
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.errors import BadInput
from muster.model.node import Device, Node
from muster.model.policy import PRESETS, Policy
from muster.model.tenancy import Quota, Team, Tenancy
from muster.model.units import DAY, GIB, HOUR, MIB
from muster.server.config import BadConfig, Config, parse_config, read_config
from muster.server.config_layout import KEYS
from muster.server.config_tables import Limits, Machine
from muster.server.config_values import HERE

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs/how-to"
PAGES = [
    ROOT / "docs/reference/configuration.md",
    HOW_TO / "share-a-machine.md",
    HOW_TO / "get-messages.md",
]
HOW = ("act", "warnings", "between", "grace")  # a finding is answered
EXAMPLES = [text for page in PAGES for text in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)]


def parsed(text: str) -> Config:
    return parse_config(text, "muster.toml")


def refusal(text: str) -> str:
    with pytest.raises(BadConfig) as caught:
        parsed(text)
    return str(caught.value)


# What it says


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    assert read_config(tmp_path / "muster.toml") == Config() == parsed("")


def test_the_defaults_are_muster_s_own() -> None:
    assert Config().policy() == Policy()
    assert Config().teams() == ()
    assert Config().server.address == HERE, "on this machine only"


def test_a_file_is_read_with_humane_units(tmp_path: Path) -> None:
    path = tmp_path / "muster.toml"
    path.write_text(
        '[limits]\ntime_most = "2d"\nmemory_default = "8G"\ngrace = "90s"\n[server]\nhttp = "[::1]:0"'
    )
    config = read_config(path)
    assert config.limits == Limits(time_most_seconds=2 * DAY, memory_default_bytes=8 * GIB, grace_seconds=90)
    assert config.server.address == ("::1", 0)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "muster.toml"
    path.write_bytes(b"\xef\xbb\xbf[server]\r\nremembers = 5\r\n")
    assert read_config(path).server.remembers == 5


def test_a_policy_is_a_preset_with_knobs() -> None:
    text = 'preset = "easy"\nhalf_life_seconds = "1d"\ncharges = [1, 1, 1.5]\ncompact = true\ndepth = 7'
    policy = parsed(f"[policy]\n{text}").policy()
    changed = {"half_life_seconds": DAY, "charges": (1.0, 1.0, 1.5), "compact": True, "depth": 7}
    assert policy == msgspec.structs.replace(PRESETS["easy"], **changed)


def test_teams_come_parents_first() -> None:
    config = parsed(
        """
        [team.a]
        parent = "b"
        weight = 2
        [team.b]
        quota = { gpus = 4, memory = "64G" }
        borrow = false
        lend = { gpus = 1.5 }
        [team.c]
        borrow = true
        """
    )
    assert config.teams() == (
        Team("b", "", Quota(4000, None, 64 * GIB), 1.0, Quota(0, 0, 0), Quota(gpus_milli=1500)),
        Team("c"),
        Team("a", "b", weight=2.0),
    )


def test_the_nearest_team_that_says_so_counts_for_what_a_charter_needs() -> None:
    text = '[charter]\nrequire = "off"\n[team.a]\nrequire = "strict"\n[team.b]\nparent = "a"\n'
    config = parsed(text + '[team.c]\nparent = "b"\nrequire = "warn"\n[team.d]\n')
    found = {team: config.require_of(team) for team in ("a", "b", "c", "d", "", "undeclared")}
    assert found == {"a": "strict", "b": "strict", "c": "warn", "d": "off", "": "off", "undeclared": "off"}
    assert Config().require_of("") == "warn"


def test_who_has_left_may_be_said_by_day() -> None:
    config = parsed(
        "[user.a]\nleft = 2026-10-01\n[user.b]\nleft = 2026-10-01T12:00:00Z\n[user.c]\nleft = true"
    )
    assert [config.user[name].left for name in "abc"] == [date(2026, 10, 1), date(2026, 10, 1), True]


def test_a_user_s_limits_change_some_of_everybody_s() -> None:
    text = '[limits]\ntime_most = "4h"\nlog_bytes = "1M"\n[user.ada.limits]\ntime_most = "unlimited"\n'
    config = parsed(text + "[user.ben]\nlimits = { jobs_waiting = 2 }")
    assert config.limits_of("ada") == Limits(log_bytes=MIB)
    assert config.limits_of("ben") == Limits(time_most_seconds=4 * HOUR, log_bytes=MIB, jobs_waiting=2)
    assert config.limits_of("cy") == config.limits == Limits(time_most_seconds=4 * HOUR, log_bytes=MIB)


def test_users_belong_to_the_teams_that_list_them_and_to_their_own() -> None:
    text = '[team.a]\nusers = ["ada"]\nleads = ["ben"]\n[team.b]\n[user.ada]\nteam = "b"'
    config = parsed(text)
    assert config.teams_of("ada") == ("a", "b")
    assert config.users_of("a") == ["ada", "ben"]
    assert config.users_of("b") == ["ada"]
    assert config.users_of("nobody's") == []


# What is made of the machine

FOUND = Node("here", 8000, 32 * GIB, devices=(Device("A40"),), labels=frozenset({"fast"}))


def test_without_a_word_the_machine_is_what_was_found() -> None:
    assert Machine().applied_to(FOUND) == FOUND


def test_what_is_reserved_is_not_for_jobs() -> None:
    machine = parsed('[node]\nreserve_cpus = 0.5\nreserve_memory = "2G"\nlabels = ["ssd"]').node
    node = machine.applied_to(FOUND)
    assert (node.cpus_milli, node.memory_bytes) == (7500, 30 * GIB)
    assert node.labels == {"fast", "ssd"}
    assert node.devices == FOUND.devices


def test_gpus_can_be_declared() -> None:
    machine = parsed('[node]\ngpus = 2\ngpu_model = "V100"\ngpu_memory = "16G"\ncpus = 4\nmemory = "8G"').node
    node = machine.applied_to(FOUND)
    assert node.devices == (Device("V100", 16 * GIB),) * 2
    assert (node.cpus_milli, node.memory_bytes) == (4000, 8 * GIB)


def test_a_machine_that_is_reserved_whole_is_refused() -> None:
    with pytest.raises(BadInput, match="leaves no cpu or no memory of here"):
        Machine(reserve_memory_bytes=32 * GIB).applied_to(FOUND)


# What is refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[teams.a]", "line 1: teams: there is no such setting; did you mean 'team'?"),
        ("\n[node]\ngpu = 2", "line 3: node.gpu: there is no such setting; did you mean 'gpus'?"),
        ("[server]\nzzzzzz = 1", "line 2: server.zzzzzz: there is no such setting; known: http, name, re"),
        (
            "[policy]\nhalf_life = 1",
            "line 2: policy.half_life: there is no such setting; did you mean 'half_l",
        ),
        ("[policy]\nname = 'x'", "policy.name: there is no such setting"),
        ("[team.a]\nquota = {\n gpus = 1, gpu = 1 }", "this is not TOML"),
        (
            "[team.a]\nquota = { gpu = 1 }",
            "line 2: team.a.quota.gpu: there is no such setting; did you mean 'gpus'?",
        ),
        ("[team.a.quota]\ngpus = -1", "line 2: team.a.quota.gpus: -1 is not a number from 0"),
        ("team = 3", "line 1: team: 3 is not a table"),
        ("[[server]]", "line 1: server: a list is not a table"),
        ("[team]\na = 1", "line 2: team.a: 1 is not a table"),
        ('[server]\nname = "../x"', "line 2: server.name: '../x' is not a name"),
        ('[server]\nname = ""', "server.name: '' is not a text"),
        ('[server]\nhttp = "7777"', "'7777' is not an address; write it like 127.0.0.1:7777"),
        ('[server]\nhttp = "h:99999"', "'h:99999' is not an address"),
        ("[server]\nhttp = 7777", "7777 is not a text in quotes"),
        ("[server]\nremembers = true", "line 2: server.remembers: true is not a whole number"),
        ("[server]\nremembers = 1.5", "1.5 is not a whole number"),
        ("[server]\nremembers = 1979-05-27", "a date or time is not a whole number"),
        ("[server]\nremembers = 0x" + "f" * 5000, "a number that long is not a whole number"),
        ("[server]\n\nremembers = " + "9" * 5000, "line 3: a number has absurdly many digits"),
        ("[node]\ncpus = nan", "line 2: node.cpus: nan is not a number from 0"),
        ("[node]\ncpus = inf", "node.cpus: inf is not"),
        ("[node]\ncpus = 0", "node.cpus: 0 is not above 0"),
        (
            "[node]\nmemory = 64",
            'node.memory: 64 is not a size; write it in quotes with its unit, like "64G"',
        ),
        ('[node]\nmemory = "64X"', "node.memory: '64X' is not a size; write it like 512M"),
        ('[node]\nmemory = "' + "9" * 5000 + '"', "is absurdly long"),
        ("[node]\ngpus = 5000", "5000 GPUs are more than any machine has"),
        ('[node]\ngpu_model = "A40"', "line 1: node: gpu_model and gpu_memory speak of the GPUs"),
        ('[node]\nlabels = [\n"a",\n"b c"]', "line 4: node.labels: 'b c' is not a name"),
        ('[node]\nlabels = "a"', "'a' is not a list of names"),
        (
            "[limits]\ngrace = 30",
            'limits.grace: 30 is not a time span; write it in quotes with its unit, like "30s"',
        ),
        ('[limits]\ngrace = "-5s"', "'-5s' is not a time span"),
        ('[limits]\ntime_most = "0s"', "limits.time_most: '0s' is not above 0"),
        ('[limits]\ntime_most = "1000000d"', "longer than a century"),
        (
            '[limits]\ntime_most = "1h"\ntime_default = "2h"',
            "line 3: limits.time_default: it is longer than time_most",
        ),
        (
            '[limits]\ntime_most = "1h"\n[user.a.limits]\ntime_default = "2h"',
            "line 4: user.a.limits.time_default: it",
        ),
        ('[policy]\npreset = "nice"', "line 2: policy.preset: unknown policy 'nice'; known: easy"),
        ('[policy]\npreset = "srtf"', "line 2: policy.preset: only a simulation knows run times"),
        ('[policy]\nruntimes = "true"', "line 2: policy.runtimes: only a simulation knows run times"),
        ('[policy]\nplace = "there"', "line 2: policy.place: unknown place 'there'; known: best-fit"),
        ("[policy]\nplace = 3", "policy.place: 3 is not a text"),
        ('[policy]\nreservations = "4"', "'4' is not a whole number"),
        ("[policy]\npatience = -1", "policy.patience: -1 is not a number"),
        ("[policy]\ncompact = 1", "policy.compact: 1 is neither true nor false"),
        ("[policy]\ncharges = [1, 2]", "policy.charges: charges="),
        ("[policy]\ncharges = [1, 2,\n'3']", "line 3: policy.charges: '3' is not a number"),
        ("[policy]\nhalf_life_seconds = 0", "must be above zero"),
        ("[team.a]\nweight = 0", "line 2: team.a.weight: 0 is not above 0"),
        (
            '[team.a]\n[team.b]\nparent = "aa"',
            "line 3: team.b.parent: there is no team 'aa'; did you mean 'a'?",
        ),
        ('[team.a]\nparent = "a"', "line 2: team.a.parent: 'a' would be its own ancestor"),
        ('[team.a]\nparent = "b"\n[team.b]\nparent = "a"', "team.a.parent: 'a' would be its own ancestor"),
        ('[team."a/b"]', "line 1: team.a/b: 'a/b' is not a name"),
        ('[team."a\\u001bb"]', r"line 1: team.'a\x1bb': 'a\x1bb' is not a name"),
        ('[team.""]', "is not a text"),
        ("[team.a]\nborrow = 3", "team.a.borrow: 3 is not a table"),
        ('[team.a]\nusers = ["x",\n"x"]', "line 3: team.a.users: 'x' is listed twice"),
        (
            '[user.ada]\nteam = "vison"\n[team.vision]',
            "line 2: user.ada.team: there is no team 'vison'; did you mean",
        ),
        ('[user.ada]\nteam = "vision"', "there is no team 'vision'; there is none"),
        (
            '[user.ada]\nrole = "king"',
            "line 2: user.ada.role: 'king' is none of the choices; known: admin, lead, user",
        ),
        ('[user.ada]\nrole = "adm"', "did you mean 'admin'?"),
        (
            '[user.ada]\nrole = "lead"',
            "line 2: user.ada.role: 'ada' is in no team that could be led; set team",
        ),
        (
            '[team.a]\nusers = ["ada"]\n[team.b]\nleads = ["x",\n"ada"]',
            "line 5: team.b.leads: 'ada' is in 'a' and 'b'; choose the one for jobs that name none",
        ),
        ('[charter]\nrequire = "zzz"', "line 2: charter.require: 'zzz' is none of the choices; known: off, "),
        ('[charter]\nneed = "warn"', "line 2: charter.need: there is no such setting"),
        ("[team.a]\nrequire = true", "line 2: team.a.require: true is none of the choices"),
        ('[user.ada]\nwas = "ana"', "line 2: user.ada.was: 'ana' is not a list of names"),
        ('[user.ada]\nwas = ["ada"]', "line 2: user.ada.was: 'ada' is what they are called now"),
        (
            '[user.ada]\nwas = ["x",\n"ana"]\n[user.ana]',
            "line 3: user.ada.was: 'ana' has settings of its own; move them to [user.ada]",
        ),
        (
            '[user.ada]\nwas = ["ana"]\n[user.bo]\nwas = ["ana"]',
            "line 4: user.bo.was: 'ana' was 'ada' already; one person had the name",
        ),
        (
            '[user.ada]\nleft = "soon"',
            "line 2: user.ada.left: 'soon' does not say since when; write true, or",
        ),
        ("[user.ada]\nleft = 10:00:00", "user.ada.left: a date or time does not say since when"),
        ("[server", "line 1: this is not TOML: expected ']'"),
        ("\n\na = = 1\n", "line 3: this is not TOML: invalid value"),
        ("a = [\n1,\n\n", "line 2: this is not TOML"),
        ("\na = " + "[" * 5000, "line 2: it is nested too deeply"),
        ("\n\na" + ".a" * 300_000 + " = 1", "line 3: it is longer than 10,000 characters; break it up"),
    ],
)
def test_a_slip_is_told_in_one_sentence_with_its_line(text: str, said: str) -> None:
    sentence = refusal(text)
    assert sentence.startswith("muster.toml, line ")
    assert said in sentence
    assert "\n" not in sentence
    assert len(sentence) < 700


def test_a_wrong_store_is_refused_without_repeating_its_password() -> None:
    assert "secret" not in refusal('[server]\nstore = "mysql://me:secret@host/db"')


@pytest.mark.parametrize(
    "url", ["sqlite:////var/lib/muster.db", "postgresql+psycopg://me:x@host:5432/muster"]
)
def test_a_store_is_a_url(url: str) -> None:
    assert parsed(f'[server]\nstore = "{url}"').server.store == url


def test_a_tree_of_teams_has_a_depth() -> None:
    chain = "\n".join(f'[team.t{i}]\nparent = "t{i - 1}"' for i in range(1, 40))
    assert "more than 16 teams would stand above each other" in refusal("[team.t0]\n" + chain)


def test_a_file_that_is_not_utf8_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "muster.toml"
    path.write_bytes(b"[server]\n# caf\xe9\n")
    with pytest.raises(BadConfig, match=r"muster\.toml, line 2: this is not UTF-8"):
        read_config(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe"):
        with pytest.raises(BadConfig, match="not a regular file"):
            read_config(tmp_path / name)


def test_a_file_that_can_t_be_reached_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadConfig, match="can't be read: Not a directory"):
        read_config(tmp_path / "file" / "muster.toml")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "muster.toml").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(BadConfig, match="larger than 1M"):
        read_config(tmp_path / "muster.toml")


# Whatever is written

KEYS_WRITTEN = st.sampled_from([*KEYS, *(key for keys in KEYS.values() for key in keys), "a", "b", '"é/"'])
NUMBERS_WRITTEN = [
    "1",
    "0",
    "-1",
    "1.5",
    "nan",
    "-inf",
    "1e999",
    "99999999999999999999",
    "true",
    "1979-05-27",
]
WORDS_WRITTEN = ['"1G"', '"2h"', '"a"', '"b"', '"fair"', '"srsf"', '"lead"', '"unlimited"']
LISTS_WRITTEN = ["[]", '["a"]', "[1, 2, 3]", "{}", "{ gpus = 1 }"]
VALUES_WRITTEN = st.sampled_from([*NUMBERS_WRITTEN, *WORDS_WRITTEN, *LISTS_WRITTEN])
PATHS_WRITTEN = st.lists(KEYS_WRITTEN, min_size=1, max_size=3).map(".".join)
LINES_WRITTEN = st.one_of(
    PATHS_WRITTEN.map("[{}]".format),
    st.sampled_from(
        ["[server]", "[policy]", "[node]", "[limits]", "[team.a]", "[team.b]", "[user.a]", "[user.b.limits]"]
    ),
    st.tuples(PATHS_WRITTEN, VALUES_WRITTEN).map(" = ".join),
)


def outcome(text: str) -> Config | BadConfig:
    """Anything else that may be raised fails the test."""
    try:
        return parsed(text)
    except BadConfig as trouble:
        return trouble


def gives_a_config_or_says_why(text: str) -> None:
    found = outcome(text)
    if isinstance(found, BadConfig):
        assert 1 <= (found.line or 0) <= text.count("\n") + 1
        assert str(found).isprintable()
    else:
        Tenancy(found.teams())
        found.policy()


@given(st.text())
def test_any_text_gives_a_config_or_a_sentence(text: str) -> None:
    gives_a_config_or_says_why(text)


@given(st.lists(LINES_WRITTEN, max_size=8).map("\n".join))
def test_any_lines_of_known_words_give_a_config_or_a_sentence(text: str) -> None:
    gives_a_config_or_says_why(text)


@given(st.sampled_from(EXAMPLES), st.data())
def test_an_example_with_a_piece_cut_out_gives_a_config_or_a_sentence(text: str, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(text)))
    last = data.draw(st.integers(first, min(len(text), first + 20)))
    gives_a_config_or_says_why(text[:first] + text[last:])


@given(st.sampled_from([(t, k) for t, keys in KEYS.items() for k in keys]), VALUES_WRITTEN)
def test_any_value_under_any_key_is_read_or_refused_on_its_line(place: tuple[str, str], value: str) -> None:
    table, key = place
    header = f"[{table}.x]" if table in ("team", "user") else f"[{table}]"
    found = outcome(f"\n{header}\n{key} = {value}")
    assert isinstance(found, Config) or found.line in (2, 3)


# The pages


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_in_the_docs_is_read(text: str) -> None:
    assert parsed(text) != Config()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


def test_every_key_is_in_the_reference() -> None:
    sections = dict(
        re.findall(r"^## `\[(\w+)[^\n]*\n(.*?)(?=^## |\Z)", PAGES[0].read_text(), re.DOTALL | re.MULTILINE)
    )
    missing = {
        f"{table}.{key}"
        for table, keys in KEYS.items()
        for key in keys
        if f"`{key}`" not in sections.get(table, "") and table != "policy"
    }
    assert missing == set()


def test_servers_that_may_be_asked_for_metrics_are_named() -> None:
    assert parsed('[monitor]\nmlflow_hosts = ["mlflow.lab.org", "10.0.0.5"]').monitor.mlflow_hosts == (
        "mlflow.lab.org",
        "10.0.0.5",
    )


def test_the_defaults_in_the_reference_are_the_defaults() -> None:
    limits, text = Limits(), PAGES[0].read_text()
    assert limits.log_bytes == 256 * MIB
    assert '| `log_bytes` | `"256M"` |' in text
    assert limits.grace_seconds == 30.0
    assert '| `grace` | `"30s"` |' in text
    assert f"| `jobs_waiting` | {limits.jobs_waiting} |" in text
    assert f"| `array_members` | {limits.array_members} |" in text
    assert f"| `remembers` | {Config().server.remembers} |" in text


@pytest.mark.parametrize("table", ["monitor", "findings"])
def test_a_file_that_says_what_the_reference_says_of_metering_and_findings_changes_nothing(
    table: str,
) -> None:
    text = PAGES[0].read_text().partition(f"\n## `[{table}]`\n")[2]
    first = text.partition("\n## ")[0].partition("\nWhat is done")[0]
    said = re.findall(r"^\| `(\w+)` \| `?([^|`]+)`? \|", first, re.MULTILINE)
    assert {key for key, _ in said} == set(KEYS[table]) - set(HOW)
    assert parsed("\n".join([f"[{table}]", *(f"{key} = {value}" for key, value in said)])) == Config()


def test_how_a_finding_is_answered_by_default_is_in_the_reference() -> None:
    text = PAGES[0].read_text().partition("\nWhat is done")[2]
    said = re.findall(r"^\| `(\w+)` \| `?([^|`]+)`? \|", text.partition("\n## ")[0], re.MULTILINE)
    assert [key for key, _ in said] == list(HOW)
    how = ", ".join(f"{key} = {value}" for key, value in said if key != "act")
    assert parsed(f'[findings]\non_idle = {{ act = "warn", {how} }}') == Config()
