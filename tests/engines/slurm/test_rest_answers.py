"""What slurmrestd answers, by the recordings of three versions, and whatever goes wrong on the way."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_rested import NUMBERS, Rested, breaks_off, drips, endless, hangs_up, mumbles
from slurm_situations import CARRIED, VERSIONS

from muster.engines.slurm import errors, texts
from muster.engines.slurm.commands import Commands
from muster.engines.slurm.jobs import read_jobs
from muster.engines.slurm.nodes import read_nodes
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.rest import Rest
from muster.engines.slurm.rest_line import Line, Place, parse_place
from muster.engines.slurm.rest_token import Tokens, claims
from muster.model.errors import BadInput

NOTHING = b'{"errors": [], "jobs": [], "meta": {"slurm": {"release": "26.05.5"}}}'


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without any command of Slurm's, and without a token."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SLURM_JWT", raising=False)
    monkeypatch.delenv("SLURM_CONF", raising=False)


@pytest.fixture(params=VERSIONS)
def server(request: pytest.FixtureRequest, tmp_path: Path, alone: None) -> Iterator[Rested]:
    with contextlib.closing(Rested(tmp_path / "s", request.param)) as made:
        yield made


@pytest.fixture
def newest(tmp_path: Path, alone: None) -> Iterator[Rested]:
    with contextlib.closing(Rested(tmp_path / "s", "26.05.5")) as made:
        made.answers["/slurm/v0.0.45/jobs"] = (200, NOTHING)
        yield made


@contextlib.contextmanager
def asking(
    server: Rested, *, read_only: bool = False, limit: float = 5.0, most: int = 1 << 30
) -> Iterator[Rest]:
    place = Place("unix", str(server.server_address))
    line = Line(place, Tokens(), limit_seconds=limit, most_bytes=most)
    with contextlib.closing(Rest(line, Commands(read_only=read_only))) as made:
        yield made


def path(version: str, of: str, kind: str = "slurm") -> str:
    return f"/{kind}/v0.0.{NUMBERS[version][-1]}/{of}"


# --- What was recorded -----------------------------------------------------------------------------


def test_jobs_are_read_as_by_command_in_every_version(server: Rested) -> None:
    found = 0
    for recorded in sorted((CARRIED / server.version).glob("*.squeue.json")):
        answer = recorded.read_bytes()
        if b'"error_number"' in answer or b'"errors": [\n    {' in answer:
            continue
        server.answers[path(server.version, "jobs")] = (200, answer)
        with asking(server) as slurm:
            assert slurm.jobs() == read_jobs(answer, Notices())
        found += 1
    assert found


def test_nodes_are_read_as_by_command_in_every_version(server: Rested) -> None:
    command = "sinfo" if server.version == "22.05.8" else "scontrol-node"
    recorded = sorted((CARRIED / server.version).glob(f"*.{command}.json"))
    assert recorded
    for one in recorded:
        server.answers[path(server.version, "nodes")] = (200, one.read_bytes())
        with asking(server) as slurm:
            assert slurm.nodes() == read_nodes(one.read_bytes(), Notices())


def test_the_newest_interface_that_is_known_is_spoken(server: Rested) -> None:
    server.answers[path(server.version, "jobs")] = (200, NOTHING)
    with asking(server) as slurm:
        assert slurm.jobs() == ()
    assert [one.path for one in server.asked] == ["/openapi/v3", path(server.version, "jobs")]


@pytest.mark.parametrize("offered", [b'{"paths": {}}', b'{"paths": {"/slurm/v0.0.99/jobs": {"get": {}}}}'])
def test_an_interface_that_nobody_knows_is_one_sentence(newest: Rested, offered: bytes) -> None:
    newest.answers["/openapi/v3"] = (200, offered)
    with (
        asking(newest) as slurm,
        pytest.raises(errors.BadConfiguration, match="no interface that Muster know"),
    ):
        slurm.jobs()


def test_a_slurmrestd_that_was_exchanged_is_asked_anew_what_it_offers(newest: Rested) -> None:
    with asking(newest) as slurm:
        slurm.jobs()
        del newest.answers["/slurm/v0.0.45/jobs"]
        newest.answers["/slurm/v0.0.44/jobs"] = (200, NOTHING)
        newest.answers["/openapi/v3"] = (200, b'{"paths": {"/slurm/v0.0.44/jobs/": {"get": {}}}}')
        with pytest.raises(errors.Unreachable, match="has become another"):
            slurm.jobs()
        assert slurm.jobs() == ()


PARTITIONS = [
    {"name": "gpu", "nodes": {"configured": "node[1-3]", "total": 3}, "accounts": {"allowed": ""},
     "tres": {"configured": "cpu=24,mem=48000M,node=3,billing=24,gres/gpu=12,gres/gpu:a40=12"},
     "cpus": {"total": 24}, "defaults": {"time": {"set": True, "infinite": False, "number": 30}},
     "maximums": {"nodes": {"set": False, "infinite": True, "number": 0},
                  "time": {"set": True, "infinite": False, "number": 1440}},
     "minimums": {"nodes": 0}, "priority": {"tier": 1}, "partition": {"state": ["UP"]}, "flags": ["DEFAULT"]},
]  # fmt: skip
SAID = (
    "PartitionName=gpu AllowAccounts=ALL Default=YES DefaultTime=00:30:00 MaxNodes=UNLIMITED "
    "MaxTime=1-00:00:00 MinNodes=0 Nodes=node[1-3] PriorityTier=1 State=UP TotalCPUs=24 TotalNodes=3 "
    "TRES=cpu=24,mem=48000M,node=3,billing=24,gres/gpu=12,gres/gpu:a40=12\n"
)


def test_a_partition_in_json_is_the_one_in_text(newest: Rested) -> None:
    newest.answers["/slurm/v0.0.45/partitions"] = (200, json.dumps({"partitions": PARTITIONS}).encode())
    with asking(newest) as slurm:
        assert slurm.partitions() == texts.read_partitions(SAID)
    flagless = [{**PARTITIONS[0], "flags": None}]  # 24.11 does not say which is the default
    newest.answers["/slurm/v0.0.45/partitions"] = (200, json.dumps({"partitions": flagless}).encode())
    with asking(newest) as slurm:
        assert slurm.partitions()[0].default is None


def test_nothing_found_in_accounting_is_no_error(newest: Rested) -> None:
    said = {"errors": [{"error_number": 9003, "error": "Nothing found with query"}], "jobs": []}
    newest.answers["/slurmdb/v0.0.45/jobs"] = (200, json.dumps(said).encode())
    with asking(newest) as slurm:
        assert slurm.named(["a", "b"], 5.0) == ()
        assert slurm.attempts(1_800_000_000.0) == ()
    assert newest.asked[-2].query["job_name"] == "a,b"
    wanted = {"start_time": "uts1800000000", "show_duplicates": "true", "skip_steps": "true"}
    assert newest.asked[-1].query == wanted


def test_without_accounting_that_is_said(newest: Rested) -> None:
    newest.answers["/openapi/v3"] = (200, b'{"paths": {"/slurm/v0.0.45/jobs/": {"get": {}}}}')
    with asking(newest) as slurm, pytest.raises(errors.AccountingDown, match="offers no accounting"):
        slurm.attempts(0)


# --- What goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoils", "kind", "says"),
    [
        (breaks_off, errors.BadAnswer, "breaks off"),
        (mumbles, errors.BadAnswer, "no HTTP"),
        (hangs_up, errors.Unreachable, "hung up without an answer"),
        (drips, errors.TooSlow, "no answer within 0.3 s"),
        (endless, errors.BadAnswer, "more than 100,000 bytes"),
    ],
)
def test_an_answer_that_is_none_changes_nothing(newest: Rested, spoils, kind, says) -> None:  # type: ignore[no-untyped-def]
    with asking(newest, limit=0.3 if spoils is drips else 5.0, most=100_000) as slurm:
        slurm.jobs()
        newest.spoils = spoils
        with pytest.raises(kind, match=says):
            slurm.jobs()
        newest.spoils = lambda *_: False
        assert slurm.jobs() == ()


def test_an_answer_that_says_to_be_giant_is_not_read(newest: Rested) -> None:
    newest.answers["/slurm/v0.0.45/jobs"] = (200, b" " * 200_000)
    with asking(newest, most=100_000) as slurm, pytest.raises(errors.BadAnswer, match="200,000 bytes"):
        slurm.jobs()


@pytest.mark.parametrize(
    ("status", "said", "kind", "says"),
    [
        (401, b"Authentication failure", errors.NotAuthenticated, "does not know who is asking"),
        (500, b'{"errors": [{"error": "Unable to contact slurm controller (connect failure)"}]}',
         errors.ControllerDown, "scontrol ping"),
        (500, b'{"errors": [{"error": "Unspecified error", "error_number": -1}]}',
         errors.ControllerDown, "without saying why"),
        (500, b'{"errors": [{"error": "Access/permission denied"}]}', errors.Denied, "ask the job's owner"),
        (502, b"<html>Bad Gateway</html>", errors.Unreachable, "HTTP 502"),
        (200, b'{"errors": [{"error": "Unable to contact slurm controller"}], "jobs": []}',
         errors.ControllerDown, "scontrol ping"),
        (200, b'{"jobs": [', errors.BadAnswer, "breaks off"),
    ],
)  # fmt: skip
def test_what_it_says_no_with_is_one_sentence(  # type: ignore[no-untyped-def]
    newest: Rested, status: int, said: bytes, kind, says
) -> None:
    newest.answers["/slurm/v0.0.45/jobs"] = (status, said)
    with asking(newest) as slurm, pytest.raises(kind, match=says):
        slurm.jobs()


def test_questions_go_over_one_connection(newest: Rested) -> None:
    with asking(newest) as slurm:
        for _ in range(20):
            slurm.jobs()
    assert newest.connections == 1


def test_an_order_that_breaks_off_is_not_given_twice(newest: Rested) -> None:
    with asking(newest) as slurm:
        slurm.jobs()
        newest.spoils = hangs_up
        with pytest.raises(errors.Unreachable, match="whether it did what it was to do is not known"):
            slurm.submit(["--job-name=x"], "#!/bin/sh\n")
    assert [one.method for one in newest.asked].count("POST") == 1


def test_a_job_that_was_taken_with_words_about_it_was_taken(newest: Rested) -> None:
    said = b'{"job_id": 12, "errors": [{"error_code": 2042, "error": "Job is in held state"}]}'
    newest.answers["/slurm/v0.0.45/job/submit"] = (200, said)
    with asking(newest) as slurm:
        assert slurm.submit(["--hold"], "#!/bin/sh\n") == 12


def test_cancelling_what_is_over_or_unknown_is_no_error_and_others_are_tried(newest: Rested) -> None:
    gone = b'{"errors": [{"error": "Invalid job id specified"}]}'
    over = b'{"errors": [{"error": "Job/step already completing or completed"}]}'
    no = b'{"errors": [{"error": "Access/permission denied"}]}'
    for job, answer in {"1": (500, gone), "2": (500, over), "3": (500, no), "4_1": (200, b"{}")}.items():
        newest.answers[f"/slurm/v0.0.45/job/{job}"] = answer
    with asking(newest) as slurm:
        slurm.cancel([1, 2])
        with pytest.raises(errors.Denied):
            slurm.cancel([3, "4_1"], signal="USR1")
        slurm.cancel(["4_1"], signal="USR1", steps_only=True)
    assert [one.query for one in newest.asked[-2:]] == [
        {"signal": "USR1", "flags": "FULL_JOB"},
        {"signal": "USR1"},
    ]


def test_who_only_observes_sends_no_order(newest: Rested) -> None:
    with asking(newest, read_only=True) as slurm:
        for order in (
            lambda: slurm.submit([], "#!/bin/sh\n"),
            lambda: slurm.cancel([1]),
            lambda: slurm.limit(1, 60.0),
            lambda: slurm.drain("n", "why"),
            lambda: slurm.undrain("n"),
            lambda: slurm.control("suspend", [1]),
        ):
            with pytest.raises(errors.Denied, match="only observes"):
                order()
    assert {one.method for one in newest.asked} <= {"GET"}


def test_a_node_is_drained_where_the_interface_can(newest: Rested) -> None:
    newest.answers["/slurm/v0.0.45/node/n1"] = (200, b"{}")
    with asking(newest) as slurm:
        slurm.drain("n1", "fan")
        slurm.undrain("n1")
    assert [json.loads(one.body) for one in newest.asked[-2:]] == [
        {"state": ["DRAIN"], "reason": "fan"},
        {"state": ["RESUME"]},
    ]


# --- Where it is, and who asks ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("unix:/run/s.sock", Place("unix", "/run/s.sock")),
        ("http://127.0.0.1:6820", Place("http", "127.0.0.1", 6820)),
        ("https://slurm.example.org/", Place("https", "slurm.example.org", 6820)),
        ("http://[::1]:99", Place("http", "::1", 99)),
    ],
)
def test_places_are_read(text: str, place: Place) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize(
    "text",
    ["", "unix:s.sock", "ftp://x", "http://a:0", "http://a:99999", "http://u@h:1", "http://h:1/x", "/s"],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="write"):
        parse_place(text)


TOKEN = "e30.eyJleHAiOiAxMDAsICJzdW4iOiAiYW5hIn0.sign"  # exp 100, sun ana


def test_a_token_says_whose_it_is_and_is_shown(
    newest: Rested, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (claims(TOKEN).sun, claims(TOKEN).exp) == ("ana", 100.0)
    assert claims("nonsense").sun is None
    monkeypatch.setenv("SLURM_JWT", TOKEN)
    with asking(newest, read_only=True) as slurm:
        slurm.jobs()
    assert newest.asked[-1].headers["X-SLURM-USER-TOKEN"] == TOKEN
    assert newest.asked[-1].headers["X-SLURM-USER-NAME"] == "ana"
    path = tmp_path / "token"
    path.write_text(f"SLURM_JWT={TOKEN}\n")
    path.chmod(0o600)
    assert Tokens(str(path)).read() == TOKEN


def test_a_token_that_others_can_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    with pytest.raises(errors.NotAuthenticated, match="can't be read"):
        Tokens(str(path)).read()
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o640)
    with pytest.raises(errors.BadConfiguration, match="chmod 600"):
        Tokens(str(path)).read()
    path.chmod(0o600)
    path.write_text("two words")
    with pytest.raises(errors.NotAuthenticated, match="holds no token"):
        Tokens(str(path)).read()


def test_a_token_that_is_over_explains_whatever_fails(
    newest: Rested, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JWT", TOKEN)
    newest.answers["/slurm/v0.0.45/jobs"] = (500, b'{"errors": [{"error": "Unspecified error"}]}')
    with asking(newest) as slurm, pytest.raises(errors.NotAuthenticated, match="it has expired"):
        slurm.jobs()


def test_over_the_net_a_token_is_needed(alone: None) -> None:
    line = Line(parse_place("http://127.0.0.1:1"), Tokens(), limit_seconds=1.0)
    with pytest.raises(errors.BadConfiguration, match="wants a token"):
        Rest(line, Commands()).ready()


def test_where_nobody_listens_that_is_said(tmp_path: Path) -> None:
    for place in (f"unix:{tmp_path}/none", "http://127.0.0.1:1"):
        line = Line(parse_place(place), Tokens(), limit_seconds=1.0)
        with pytest.raises(errors.Unreachable, match="start it there, or set rest in"):
            Rest(line, Commands()).jobs()


def test_a_socket_of_ones_own_is_asked_as_oneself(newest: Rested) -> None:
    with asking(newest) as slurm:
        slurm.ready()
        newest.answers["/slurmdb/v0.0.45/user/root"] = (200, b'{"users": []}')
        assert slurm.is_operator() is (os.geteuid() == 0)
