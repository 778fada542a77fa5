"""Where the parts of the steward meet: efforts that are paused and budgets that are spent, names and rights.

What one part keeps back, another does not let go.
"""

import re
import time
from collections.abc import Callable, Iterator

import pytest

from muster.client import Client, Refused
from servers import Server, View, until

FOR = {"for": "Does 8B beat 3B on the held-out set?"}
LATER = time.strftime("%Y-%m-%d", time.localtime(time.time() + 3 * 86_400))
CONFIGURATION = """
[review]
schedule = "off"
[attention]
efforts = 50
[team.red]
users = ["ana", "ben"]
leads = ["lea"]
[team.blue]
users = ["bob"]
leads = ["leo"]
[team.poor]
budget = "0.000003 CPUh"
[user.anna]
[user.annabel]
was = ["annab"]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server("--http", "127.0.0.1:0")
    server.home.configuration.write_text(CONFIGURATION)
    with server:
        yield server


@pytest.fixture
def admin(server: Server) -> Iterator[Client]:
    with server.client() as made:
        yield made
        for effort in made.efforts():
            made.on_effort(effort["name"], "close", {"verdict": "lost"})
        for job in made.jobs(limit=0):
            if job["state"] != "STOPPING":
                made.stop(job["id"])


@pytest.fixture
def user(server: Server, admin: Client) -> Iterator[Callable[[str], Client]]:
    made: list[Client] = []

    def client(name: str) -> Client:
        made.append(Client(server.url, admin.token(name, "lead" if name.startswith("le") else "user")))
        return made[-1]

    yield client
    for one in made:
        one.close()


def opened(client: Client, name: str, **charter: object) -> str:
    client.post("/efforts", {"name": name, "charter": {**FOR, **charter}})
    return name


def is_in(client: Client, job: str, *states: str) -> View:
    until(lambda: client.job(job)["state"] in states, lambda: f"{states}: {client.job(job)}")
    return client.job(job)


def asleep(client: Client, **options: object) -> str:
    return str(client.submit(["sleep", "600"], cpus=0.01, **options)["id"])


def refused(ask: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        ask()
    return caught.value.status, str(caught.value)


# --- What is paused, and what is spent --------------------------------------------------------------


def spent_team(client: Client) -> None:
    """Something of team poor has run until its budget was spent."""
    job = asleep(client, team="poor")
    until(lambda: "budget of team poor" in (client.job(job)["reason"] or ""), "the pause")
    client.stop(job)


def test_what_waits_for_its_effort_does_not_start_while_the_team_has_no_budget(admin: Client) -> None:
    effort = opened(admin, "both")
    admin.on_effort(effort, "pause", {})
    job = asleep(admin, effort=effort, team="poor")
    spent_team(admin)
    admin.on_effort(effort, "resume", {})
    time.sleep(0.3)
    view = admin.job(job)
    assert view["state"] == "HELD"
    assert "budget of team poor" in view["reason"]


def test_what_waits_for_budget_does_not_start_while_its_effort_is_paused(admin: Client) -> None:
    effort = opened(admin, "other", budget="0.000002 CPUh")
    job = asleep(admin, effort=effort)
    held = asleep(admin, effort=effort)
    is_in(admin, job, "SUSPENDED")
    is_in(admin, held, "HELD", "SUSPENDED")
    waiting = asleep(admin, effort=effort)
    admin.on_effort(effort, "pause", {})
    admin.on_effort(effort, "extend", {"charter": {"budget": "1 CPUh"}, "because": "more"})
    is_in(admin, job, "RUNNING")
    time.sleep(0.3)
    assert "is paused" in is_in(admin, waiting, "HELD")["reason"]


def test_nobody_releases_what_waits_for_its_effort(admin: Client) -> None:
    effort = opened(admin, "kept")
    admin.on_effort(effort, "pause", {})
    job = asleep(admin, effort=effort)
    status, said = refused(lambda: admin.release(job))
    assert status == 409
    assert "muster effort resume kept" in said


def test_what_a_person_held_is_not_released_into_a_paused_effort(admin: Client) -> None:
    effort = opened(admin, "manual")
    job = asleep(admin, effort=effort, hold=True)
    admin.on_effort(effort, "pause", {})
    assert refused(lambda: admin.release(job))[0] == 409
    admin.on_effort(effort, "resume", {})
    admin.release(job)
    is_in(admin, job, "RUNNING")


def test_what_leaves_its_seats_does_not_start_again_while_its_effort_is_paused(admin: Client) -> None:
    effort = opened(admin, "requeued")
    job = asleep(admin, effort=effort)
    is_in(admin, job, "RUNNING")
    admin.on_effort(effort, "pause", {})
    admin.requeue(job)
    assert "is paused" in is_in(admin, job, "HELD")["reason"]
    admin.on_effort(effort, "resume", {})
    is_in(admin, job, "RUNNING")


# --- Budgets of efforts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "said"), [("5 EUR", "nothing has a price"), ("0.000001 CPUh", "spent already")]
)
def test_an_effort_s_budget_is_checked_as_a_job_s_is(admin: Client, budget: str, said: str) -> None:
    effort = opened(admin, f"cheap-{said.split(maxsplit=1)[0]}", budget="0.000002 CPUh")
    is_in(admin, asleep(admin, effort=effort), "SUSPENDED")
    ask = {"charter": {"budget": budget}, "because": "more of it"}
    assert said in refused(lambda: admin.on_effort(effort, "extend", ask))[1]
    defence = {"budget": budget, "because": "we need it", "until": LATER}
    assert said in refused(lambda: admin.post(f"/efforts/{effort}/defend", defence))[1]


def test_a_budget_in_money_that_nothing_costs_is_refused_from_the_start(admin: Client) -> None:
    assert "nothing has a price here" in refused(lambda: opened(admin, "money", budget="5 EUR"))[1]


def test_what_a_message_says_to_type_can_be_typed(server: Server, admin: Client) -> None:
    effort = opened(admin, "typed", budget="0.000002 CPUh")
    is_in(admin, asleep(admin, effort=effort, checkpoint_every="1h"), "HELD")
    [question] = [
        one for one in admin.get("/digest?peek=true")["questions"] if one["about"] == "effort:typed"
    ]
    words = question["action"].replace('"…"', "enough").split()
    more = words.index("--budget") + 1
    words[more] = re.sub(r"[0-9.e-]+", "1", words[more])  # while it stands still it goes on spending
    done = server.muster(*words[1:])
    assert done.returncode == 0, done.stderr
    done = server.muster("effort", "extend", effort, "--until", "+7d", "--because", "it")
    assert done.returncode == 0, done.stderr


# --- Owners -----------------------------------------------------------------------------------------


def about(client: Client, subject: str) -> list[str]:
    digest = client.get("/digest?peek=true")
    return [one["sentence"] for one in (*digest["questions"], *digest["news"]) if one["about"] == subject]


def test_who_is_made_the_owner_of_an_effort_is_told(admin: Client, user: Callable[[str], Client]) -> None:
    ana, ben = user("ana"), user("ben")
    opened(ana, "given", owner="ben")
    assert about(ben, "effort:given") == [f"ana named you to answer for effort given: {FOR['for']}"]
    assert about(ana, "effort:given") == []
    ben.on_effort("given", "extend", {"charter": {"owner": "ana"}, "because": "it is hers"})
    assert about(ana, "effort:given") == [f"ben named you to answer for effort given: {FOR['for']}"]


def test_jobs_answer_to_who_owns_the_effort_now(admin: Client, user: Callable[[str], Client]) -> None:
    ana, ben = user("ana"), user("ben")
    opened(ana, "handed", team="red")
    job = asleep(admin, effort="handed", hold=True)
    assert admin.job(job)["answers"] == "ana"
    ana.on_effort("handed", "extend", {"charter": {"owner": "ben"}, "because": "he goes on with it"})
    assert ben.job(job)["answers"] == "ben"
    assert refused(lambda: ana.stop(job))[0] == 403
    ben.stop(job)


def test_a_renamed_owner_defends_extends_and_is_told(
    server: Server, admin: Client, user: Callable[[str], Client]
) -> None:
    anna = user("anna")
    job = asleep(admin, owner="anna", budget="0.000002 CPUh")
    is_in(admin, job, "SUSPENDED")
    assert anna.get("/digest?peek=true")["questions"]
    configured(server, CONFIGURATION.replace("[user.anna]", '[user.anja]\nwas = ["anna"]'))
    anja = user("anja")
    try:
        [question] = anja.get("/digest?peek=true")["questions"]
        assert question["about"] == f"job:{job}"
        anja.extend(job, budget="+1 CPUh", because="it is mine")
        anja.post(f"/jobs/{job}/defend", {"because": "it is still mine", "until": LATER})
        assert anja.get("/digest?peek=true")["questions"] == []
    finally:
        configured(server, CONFIGURATION)


# --- Rights -----------------------------------------------------------------------------------------


def test_a_lead_acts_on_their_own_team_and_on_no_other(admin: Client, user: Callable[[str], Client]) -> None:
    lea, leo, bob = user("lea"), user("leo"), user("bob")
    opened(user("ana"), "reds", team="red")
    job = asleep(admin, team="red", owner="ana", hold=True, budget="1 CPUh")
    why = {"because": "it is wanted"}
    for stranger in (leo, bob):
        for ask in (
            lambda: stranger.on_effort("reds", "close", {"verdict": "won"}),  # noqa: B023
            lambda: stranger.on_effort("reds", "pause", {}),  # noqa: B023
            lambda: stranger.on_effort("reds", "note", {"text": "mine now"}),  # noqa: B023
            lambda: stranger.on_effort("reds", "extend", {"charter": {"budget": "9 CPUh"}, **why}),  # noqa: B023
            lambda: stranger.post("/efforts/reds/defend", {**why, "until": LATER}),  # noqa: B023
            lambda: stranger.post(f"/jobs/{job}/defend", {**why, "until": LATER}),  # noqa: B023
            lambda: stranger.extend(job, budget="9 CPUh", because="it is wanted"),  # noqa: B023
            lambda: stranger.take(job),  # noqa: B023
            lambda: stranger.stop(job),  # noqa: B023
            lambda: stranger.release(job),  # noqa: B023
            lambda: stranger.get("/digest?user=ana"),  # noqa: B023
            lambda: stranger.post(f"/jobs/{job}/report", {"values": {"acc": 1.0}}),  # noqa: B023
        ):
            assert refused(ask)[0] == 403
    lea.extend(job, budget="9 CPUh", because="it is wanted")
    lea.on_effort("reds", "close", {"verdict": "won"})


# --- Short jobs, lined up ---------------------------------------------------------------------------


def starts_in(server: Server, effort: str) -> int:
    with server.client() as client:
        return sum(client.effort(effort)["ended"].values())


def short(client: Client, effort: str) -> None:
    """So many that they are lined up behind each other."""
    ids = [client.submit(["true"], effort=effort, cpus=0.5)["id"] for _ in range(5)]
    for job in ids:
        client.wait(job)
    client.submit_many([{"command": ["true"], "effort": effort, "cpus": 0.5}] * 400)


def test_who_is_lined_up_does_not_start_when_its_effort_is_paused_and_goes_on_with_it(
    server: Server, admin: Client
) -> None:
    effort = opened(admin, "lined")
    short(admin, effort)
    until(lambda: starts_in(server, effort) > 30, "some to have run")
    admin.on_effort(effort, "pause", {})
    until(lambda: {job["state"] for job in living(admin, effort)} == {"HELD"}, "the rest to be held")
    admin.on_effort(effort, "resume", {})
    until(lambda: starts_in(server, effort) == 405, lambda: f"all to end: {admin.effort(effort)}")


def living(client: Client, effort: str) -> list[View]:
    return [job for job in client.jobs(limit=0) if job["effort"] == effort]


def test_closing_an_effort_ends_who_is_lined_up_and_who_starts(server: Server, admin: Client) -> None:
    effort = opened(admin, "closed-in-line")
    short(admin, effort)
    until(lambda: starts_in(server, effort) > 30, "some to have run")
    admin.on_effort(effort, "close", {"verdict": "lost"})
    until(lambda: not living(admin, effort), lambda: f"all to end: {admin.effort(effort)}")
    ended = admin.effort(effort)["ended"]
    assert sum(ended.values()) == 405
    assert set(ended) <= {"succeeded", "lost"}


def test_who_is_lined_up_does_not_start_when_the_budget_is_spent(server: Server, admin: Client) -> None:
    effort = opened(admin, "lined-and-poor", budget="0.00005 CPUh")
    short(admin, effort)
    reached = lambda: any(one["what"] == "paused" for one in admin.effort(effort)["story"])  # noqa: E731
    until(reached, "the budget to be spent")
    until(lambda: {job["state"] for job in living(admin, effort)} == {"HELD"}, "the rest to be held")
    admin.on_effort(effort, "extend", {"charter": {"budget": "1 CPUh"}, "because": "more"})
    until(lambda: starts_in(server, effort) == 405, lambda: f"all to end: {admin.effort(effort)}")


# --- Arrays -----------------------------------------------------------------------------------------


def test_new_exits_of_an_array_are_those_of_its_members(admin: Client) -> None:
    job = asleep(admin, array="0-1", success=["acc > 2"], **FOR)
    is_in(admin, f"{job}_0", "RUNNING")
    is_in(admin, f"{job}_1", "RUNNING")
    why = {"because": "two is too much", "until": LATER, "success": ["acc > 1"]}
    admin.post(f"/jobs/{job}/defend", why)
    admin.post(f"/jobs/{job}_0/report", {"values": {"acc": 1.5}})
    assert admin.wait(f"{job}_0")["verdict"] == "won"
    assert admin.job(f"{job}_1")["state"] == "RUNNING"


def test_an_array_that_is_taken_over_is_so_as_one(server: Server, admin: Client) -> None:
    job = asleep(admin, array="0-1", hold=True, owner="anna", budget="1 CPUh")
    configured(server, CONFIGURATION.replace("[user.anna]", "[user.anna]\nleft = true"))
    try:
        assert "muster take" in refused(lambda: admin.take(f"{job}_0"))[1]
        admin.take(job)
        assert {admin.job(f"{job}_{n}")["answers"] for n in (0, 1)} == {admin.job(job)["answers"]}
        assert admin.job(job)["answers"] != "anna"
        assert refused(lambda: admin.take(job))[1].startswith("you answer for job")
    finally:
        configured(server, CONFIGURATION)


def configured(server: Server, text: str) -> None:
    before = server.said().count("has been read again")
    server.home.configuration.write_text(text)
    until(lambda: server.said().count("has been read again") > before, "the configuration to be read")


# --- Exits ------------------------------------------------------------------------------------------


def test_an_effort_that_is_won_in_the_middle_of_many_reports_leaves_nothing_undone(
    server: Server, admin: Client
) -> None:
    effort = opened(admin, "won", success=["acc > 1"])
    job = asleep(admin, effort=effort, success=["f1 > 1"])
    is_in(admin, job, "RUNNING")
    told = [{"values": {"acc": n / 2, "f1": n / 2}, "step": n} for n in range(6)]
    admin.post(f"/jobs/{job}/report", {"reports": told})
    assert admin.wait(job)["verdict"] == "won"
    assert admin.effort(effort)["verdict"] == "won"
    assert "Traceback" not in server.said()


def test_an_effort_is_lost_by_those_that_told_something_whoever_was_withdrawn(admin: Client) -> None:
    effort = opened(admin, "lost", failure=["acc < 0.5"])
    silent, telling = asleep(admin, effort=effort), asleep(admin, effort=effort)
    is_in(admin, silent, "RUNNING")
    is_in(admin, telling, "RUNNING")
    admin.on_effort(effort, "pause", {})
    admin.requeue(silent)
    is_in(admin, silent, "HELD")
    admin.stop(silent)
    admin.report(telling, {"acc": 0.1})
    assert admin.wait(telling)["verdict"] == "lost"
    assert admin.effort(effort)["verdict"] == "lost"


def test_an_effort_is_lost_though_the_server_died_when_a_silent_one_ended() -> None:
    with Server() as server:
        with server.client() as client:
            effort = opened(client, "lost", failure=["acc < 0.5"])
            silent, telling = asleep(client, effort=effort), asleep(client, effort=effort)
            is_in(client, silent, "RUNNING")
            is_in(client, telling, "RUNNING")
            client.stop(silent)
            client.wait(silent)
        server.kill()
        server.start()
        with server.client() as client:
            client.report(telling, {"acc": 0.1})
            assert client.wait(telling)["verdict"] == "lost"
