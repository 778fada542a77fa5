"""Efforts on a real server: one charter over many jobs, a limit to how many, and the story of each."""

import re
from collections.abc import Iterator

import pytest

from muster.client import Client, Refused
from muster.model.units import DAY
from servers import Server, until

FOR = {"for": "Does 8B beat 3B on the held-out set?"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as made:
        yield made


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """Of whom nothing is under way afterwards."""
    with server.client() as made:
        yield made
        for effort in made.efforts():
            made.on_effort(effort["name"], "close", {"verdict": "lost"})


def opened(client: Client, name: str, **more: object) -> None:
    client.post("/efforts", {"name": name, "charter": {**FOR}, **more})


def sleeping(client: Client, effort: str) -> str:
    job = str(client.submit(["sleep", "100"], effort=effort)["id"])
    until(lambda: client.job(job)["state"] in ("RUNNING", "HELD"), f"job {job} to run or to be held")
    return job


def test_a_job_has_the_purpose_of_its_effort(client: Client) -> None:
    opened(client, "purpose")
    view = client.job(sleeping(client, "purpose"))
    assert (view["effort"], view["purpose"]) == ("purpose", FOR["for"])


def test_closing_an_effort_ends_its_jobs_with_its_verdict(client: Client) -> None:
    opened(client, "closing")
    jobs = [sleeping(client, "closing") for _ in range(2)]
    client.on_effort("closing", "close", {"verdict": "won", "because": "92 %"})
    for job in jobs:
        view = client.wait(job)
        assert (view["outcome"], view["verdict"]) == ("STOPPED", "won")
        assert "92 %" in view["reason"]
        assert view["cause"] is None
    assert client.effort("closing")["ended"] == {"won": 2}


def test_a_fourth_effort_asks_which_one_pauses(client: Client) -> None:
    for name in ("one", "two", "three"):
        opened(client, name)
    with pytest.raises(Refused, match="one, two, three"):
        opened(client, "four")
    opened(client, "four", pausing="two")
    assert client.effort("two")["paused"] == "makes room for four"
    with pytest.raises(Refused, match="efforts under way"):
        client.on_effort("two", "resume", {})


def test_nothing_of_a_paused_effort_starts_until_it_goes_on(client: Client) -> None:
    opened(client, "paused")
    client.on_effort("paused", "pause", {"because": "holidays"})
    job = sleeping(client, "paused")
    view = client.job(job)
    assert view["state"] == "HELD"
    assert "effort paused is paused" in view["reason"]
    client.on_effort("paused", "resume", {})
    until(lambda: client.job(job)["state"] == "RUNNING", "the job to run")


def test_going_on_releases_what_a_person_held_to_nobody(client: Client) -> None:
    opened(client, "held")
    job = str(client.submit(["true"], effort="held", hold=True)["id"])
    client.on_effort("held", "pause", {})
    client.on_effort("held", "resume", {})
    assert client.job(job)["state"] == "HELD"


def test_a_story_says_who_did_what_and_why(client: Client) -> None:
    opened(client, "story")
    client.on_effort("story", "note", {"text": "chose AdamW because SGD diverged"})
    client.on_effort("story", "extend", {"charter": {"budget": "12GPUh"}, "because": "two more epochs"})
    story = client.effort("story")["story"]
    assert [line["what"] for line in story] == ["opened", "note", "amended"]
    assert story[-1]["text"] == "budget none → 12 GPUh: two more epochs"


def test_a_budget_can_be_extended_by_an_amount(client: Client) -> None:
    opened(client, "more")
    for budget, then in (("10GPUh", "10 GPUh"), ("+2GPUh", "12 GPUh")):
        view = client.on_effort("more", "extend", {"charter": {"budget": budget}, "because": "two epochs"})
        assert (view["budget"], view["spending"]["share"]) == (then, 0.0)
    with pytest.raises(Refused, match="say why"):
        client.on_effort("more", "extend", {"charter": {"budget": "+2GPUh"}, "because": " "})


def test_a_name_that_could_be_a_job_is_refused(client: Client) -> None:
    with pytest.raises(Refused, match="taken for a job"):
        opened(client, "12")


def test_an_effort_is_extended_by_so_much_as_a_job_is(client: Client) -> None:
    opened(client, "longer")
    with pytest.raises(Refused, match="there is no budget yet"):
        client.on_effort("longer", "extend", {"charter": {"budget": "+1GPUh"}, "because": "it falls"})
    client.on_effort(
        "longer", "extend", {"charter": {"budget": "9GPUh", "until": "+7d"}, "because": "it falls"}
    )
    first = client.effort("longer")
    terms = {"budget": "+3GPUh", "until": "+7d"}
    client.on_effort("longer", "extend", {"charter": terms, "because": "it still falls"})
    second = client.effort("longer")
    assert (first["budget"], second["budget"]) == ("9 GPUh", "12 GPUh")
    assert second["until"] - first["until"] == 7 * DAY


def test_the_command_that_a_spent_budget_suggests_works_and_what_is_spent_is_shown(
    client: Client, server: Server
) -> None:
    opened(client, "spender")
    client.on_effort("spender", "extend", {"charter": {"budget": "0.0001CPUh"}, "because": "it is small"})
    job = sleeping(client, "spender")
    until(lambda: client.job(job)["state"] == "SUSPENDED", "its budget to be spent")
    shown = server.muster("effort", "show", "spender").stdout
    assert "paused: its budget is spent; it ends" in shown
    assert " of 0.0001 CPUh held (" in shown
    assert "paused" in server.muster("effort", "ls").stdout
    why = server.muster("why", job).stdout
    assert "muster resume" not in why
    [command] = re.findall(r"muster (effort extend .*?) --because", why)
    low = {"charter": {"budget": "0.00001CPUh"}, "because": "less is more"}
    with pytest.raises(Refused, match="spent already"):
        client.on_effort("spender", "extend", low)
    enough = command.replace("+0.00005", "+1")
    done = server.muster(*enough.split(), "--because", "it still falls")
    assert done.returncode == 0, done.stderr
    until(lambda: client.job(job)["state"] == "RUNNING", "it to go on")


def test_without_a_reason_a_story_says_who_and_no_more(client: Client, server: Server) -> None:
    opened(client, "quiet", first_wins=True)
    for word in ("pause", "resume"):
        client.on_effort("quiet", word, {})
    client.on_effort("quiet", "close", {"verdict": "lost"})
    shown = server.muster("effort", "show", "quiet").stdout
    me = client.whoami()["name"]
    told = [re.sub(r"\s+", " ", line.partition("  ")[2]) for line in shown.splitlines()[-3:]]
    assert told == [f"paused {me}: no reason was given", f"goes on {me}", f"closed {me}: lost"]
    assert "won if  one of its jobs wins" in shown


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"name": "x", "charter": {}}, "has a purpose"),
        ({"name": "../x", "charter": FOR}, "looks like a path"),
        ({"name": "x$(id)", "charter": FOR}, "taken apart by a shell"),
        ({"name": "x; id", "charter": FOR}, "taken apart by a shell"),
        ({"name": "-x", "charter": FOR}, "taken apart by a shell"),
        ({"name": "x", "charter": {**FOR, "budgte": "9GPUh"}}, "did you mean 'budget'"),
        ({"name": "x", "charter": {**FOR, "budget": "much"}}, "not a budget"),
        ({"name": "x", "charter": {**FOR, "until": "2001-01-01"}}, "has passed"),
        ({"name": "x", "charter": {**FOR, "success": ["acc >>= 1"]}}, "not a condition"),
        ({"name": "x", "charter": FOR, "pausing": "absent"}, "no effort 'absent'"),
    ],
)
def test_an_effort_that_makes_no_sense_is_refused_and_not_opened(
    client: Client, body: dict[str, object], said: str
) -> None:
    with pytest.raises(Refused, match=said):
        client.post("/efforts", body)
    assert "x" not in [effort["name"] for effort in client.efforts()]


def test_a_job_can_only_join_an_effort_that_is_open(client: Client) -> None:
    opened(client, "over")
    client.on_effort("over", "close", {"verdict": "lost"})
    with pytest.raises(Refused, match="is closed"):
        client.submit(["true"], effort="over")
    with pytest.raises(Refused, match="no effort 'absent'"):
        client.submit(["true"], effort="absent")


def test_jobs_of_an_effort_that_was_closed_when_the_server_died_end_when_it_is_back() -> None:
    with Server() as server:
        with server.client() as client:
            opened(client, "dying")
            job = sleeping(client, "dying")
            client.on_effort("dying", "close", {"verdict": "lost"})
        server.kill()
        server.start()
        with server.client() as client:
            assert client.wait(job)["verdict"] == "lost"


def test_the_command_line_opens_shows_and_closes(server: Server) -> None:
    made = server.muster("effort", "new", "cli", "--for", FOR["for"], "--budget", "9GPUh")
    assert made.returncode == 0, made.stderr
    assert "9 GPUh" in server.muster("effort", "ls").stdout
    assert FOR["for"] in server.muster("effort", "show", "cli").stdout
    unsure = server.muster("effort", "close", "cli")
    assert (unsure.returncode, "--won or --lost" in unsure.stderr) == (2, True)
    assert server.muster("effort", "close", "cli", "--won").returncode == 0
    assert "won" in server.muster("effort", "ls", "-a").stdout


def test_why_tells_what_is_spent_of_the_budgets_that_a_job_is_under(client: Client) -> None:
    opened(client, "why")
    client.on_effort("why", "extend", {"charter": {"budget": "10GPUh"}, "because": "two epochs"})
    job = str(client.submit(["true"], effort="why", hold=True, budget="2GPUh")["id"])
    told = client.why(job)["text"]
    assert "budget   ok    0 of 2 GPUh spent by it" in told
    assert "budget   ok    0 of 10 GPUh spent by why" in told
