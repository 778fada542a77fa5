"""Charters at the door and afterwards: who is named, who is told, and who takes over what is forgotten."""

import asyncio
import getpass
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_crossing import job_of

from muster.application.request import ManyRequests, Request
from muster.client import Client, Refused
from muster.engines.local.engine import LocalEngine
from muster.home import Home
from muster.model.charter import Charter, Verdict
from muster.model.errors import BadInput
from muster.model.job import Job, single
from muster.model.message import Message
from muster.model.policy import Policy
from muster.model.stewardship import Effort, EffortClosed, EffortOpened
from muster.server.commands import Commands
from muster.server.config import parse_config
from muster.server.config_tables import Config
from muster.server.people import Directory, Person
from muster.server.service import Service
from muster.server.stewardship.door import judged, named, with_owner
from muster.server.stewardship.efforts import Efforts
from muster.steward.passing import Lack
from muster.store.fold import Fold
from muster.store.journal import Journal
from muster.store.stewardship import Stewardship
from servers import Server

PURPOSE = "Does 8B beat the 3B baseline?"
PEOPLE = '[user.ana]\nwas = ["anna"]\n[user.bo]\n[user.gone]\nleft = true\n'
CONFIG = parse_config(PEOPLE, "muster.toml")
THERE = Directory(CONFIG, is_user=lambda _: False)
ME = Person(getpass.getuser(), os.geteuid(), "admin")


def job(owner: str = "bo", **more: Any) -> Job:
    return Job(
        "7", single(cpus_milli=1000), 0.0, owner="bo", name="fit", charter=Charter(owner=owner), **more
    )


# --- Owners -----------------------------------------------------------------------------------------


def test_a_named_owner_is_written_down_by_the_name_that_they_have_now() -> None:
    assert with_owner(job("anna"), Person("bo"), THERE).charter.owner == "ana"


@pytest.mark.parametrize(
    ("owner", "said"),
    [
        ("nobody", "owner: there is nobody called 'nobody' who could answer for it; did you mean 'bo'?"),
        ("gone", "owner: 'gone' has left; name somebody who is here to answer for it"),
    ],
)
def test_an_owner_who_is_not_there_can_t_be_named(owner: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        with_owner(job(owner), Person("bo"), THERE)
    assert str(caught.value).startswith(said)


def test_whoever_submits_exists_whatever_is_written_down() -> None:
    assert with_owner(job("stranger"), Person("stranger"), THERE).charter.owner == "stranger"


def test_an_owner_who_has_left_is_missing_unless_the_effort_has_one() -> None:
    def lacks(effort: Effort | None) -> tuple[Lack, ...]:
        said = Stewardship()
        if effort is not None:
            said.apply(EffortOpened(0.0, effort))
        return judged(job("gone", time_limit_seconds=60.0, effort="e"), CONFIG, THERE, said).lacks

    whole = Charter(owner="ana", purpose=PURPOSE)
    assert lacks(None) == (Lack.OWNER, Lack.PURPOSE)
    assert lacks(Effort(name="e", charter=whole, opened_at=0.0, opened_by="ana")) == ()
    assert lacks(Effort(name="e", charter=Charter(purpose=PURPOSE), opened_at=0.0, opened_by="gone")) == (
        Lack.OWNER,
    )


def test_a_closed_effort_supplies_nothing() -> None:
    said = Stewardship()
    charter = Charter(owner="ana", purpose=PURPOSE, budget="1 GPUh")
    said.apply(EffortOpened(0.0, Effort(name="e", charter=charter, opened_at=0.0, opened_by="ana")))
    assert judged(job(effort="e"), CONFIG, THERE, said).lacks == ()
    said.apply(EffortClosed(1.0, "e", Verdict.LOST, "ana"))
    assert judged(job(effort="e"), CONFIG, THERE, said).lacks == (Lack.PURPOSE, Lack.END)


def test_who_is_named_is_told_once_for_all_that_came_together() -> None:
    jobs = [job("ana"), job("bo"), job("ana")]
    [message] = named(Person("bo"), jobs)
    assert (message.to, message.about, message.kind) == ("ana", "job:7", "named")
    assert message.sentence == "bo named you to answer for 2 jobs, 7 to 7"
    [message] = named(Person("bo"), jobs[:1])
    assert message.sentence == "bo named you to answer for job 7 fit"
    assert message.action == "muster show 7"


# --- The service, here ------------------------------------------------------------------------------


def played(play: Callable[[Service, Commands], Awaitable[None]], text: str = PEOPLE) -> list[Message]:
    """What people were told meanwhile."""
    home = Home(Path(tempfile.mkdtemp(prefix="muster-")))
    told: list[Message] = []

    async def run() -> None:
        fold, journal = Fold(Policy()), Journal.open(f"sqlite:///{home.database}")
        engine = LocalEngine(home, lambda job_id: job_of(fold, job_id), lambda _: {})
        service = Service(home, Policy(), fold, journal, engine)
        config: Config = parse_config(text, "muster.toml")
        service.directory, service.tell = Directory(config), told.append
        commands = Commands(service, config, Efforts(service, most_under_way=3))
        service.begin(())
        try:
            await play(service, commands)
        finally:
            service.end()
            await asyncio.sleep(0.05)  # what was written down last is still followed up
            engine.close(end_jobs=True)

    asyncio.run(run())
    shutil.rmtree(home.path)
    return told


def held(**options: Any) -> Request:
    return Request(command=("true",), options={"hold": True, **options})


def test_a_submission_tells_whom_it_names() -> None:
    async def play(_: Service, commands: Commands) -> None:
        view = await commands.submit(ME, held(owner="anna", **{"for": PURPOSE}))
        assert (view.owner, view.answers) == (ME.name, "ana")
        await commands.submit(ME, held())
        await commands.submit_many(ME, ManyRequests(jobs=(held(owner="bo"),) * 3))

    told = played(play)
    assert [(message.to, message.about) for message in told] == [("ana", "job:1"), ("bo", "job:3")]
    assert told[0].sentence.endswith(f"job 1 true: {PURPOSE}")


def test_nobody_is_told_of_what_was_refused() -> None:
    async def play(_: Service, commands: Commands) -> None:
        with pytest.raises(BadInput):
            await commands.submit(ME, held(owner="ana"))

    assert played(play, PEOPLE + '[charter]\nrequire = "strict"\n') == []


def test_a_default_limit_is_no_end_that_somebody_chose() -> None:
    async def play(_: Service, commands: Commands) -> None:
        asked = held(**{"for": PURPOSE})
        assert commands.built(ME, asked).judgement.lacks == (Lack.END,)
        assert commands.built(ME, asked).job.time_limit_seconds == 3600
        assert commands.built(ME, held(time="2h", **{"for": PURPOSE})).judgement.lacks == ()

    played(play, '[limits]\ntime_default = "1h"\n')


# --- A real server ----------------------------------------------------------------------------------

TEAMS = '[team.lab]\nusers = ["bo", "cy"]\n[team.other]\nusers = ["eve"]\n[user.dee]\n'


class Place:
    """A server on which jobs were submitted before ana left and anna was renamed."""

    def __init__(self, server: Server) -> None:
        self.server = server
        asked: dict[str, Any] = {"team": "lab", "begin": "now+1h", "time": "1h"}
        self.array = server.sh("true", owner="ana", array="1-2", **asked)["id"]
        self.fit = server.sh("true", owner="ana", name="fit", **asked)["id"]
        self.old = server.sh("true", owner="ana", name="old", **asked)["id"]
        self.dees = server.sh("true", owner="dee", **asked)["id"]
        self.renamed = server.sh("sleep 600", owner="anna", team="lab")["id"]
        server.terminate()
        after = '[user.ana]\nleft = 2020-01-01\n[user.annabel]\nwas = ["anna"]\n'
        server.home.configuration.write_text(TEAMS + after)
        server.start()

    def user(self, name: str) -> Client:
        with self.server.client() as client:
            return Client(self.server.url, client.token(name))


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    server = Server("--http", "127.0.0.1:0")
    server.home.configuration.write_text(TEAMS + "[user.ana]\n[user.anna]\n")
    with server:
        yield Place(server)


def refused(ask: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        ask()
    return caught.value.status, str(caught.value)


def test_forgotten_work_is_taken_over_by_somebody_of_its_team(place: Place) -> None:
    with place.user("eve") as eve, place.user("bo") as bo:
        status, said = refused(lambda: eve.take(place.array))
        assert status == 403
        assert said.startswith(f"job {place.array} is of team 'lab'; only who is in it, a lead")
        assert refused(lambda: bo.hold(place.array))[0] == 403
        view = bo.take(place.array, because="the baseline is still needed")
        assert (view["answers"], view["owner"]) == ("bo", getpass.getuser())
        assert refused(lambda: bo.take(place.array))[1].startswith("you answer for job")
        assert [job["array"]["id"] for job in bo.jobs(mine=True)] == [place.array]
        assert bo.hold(place.array)["state"] == "HELD"
        assert refused(lambda: eve.release(place.array))[0] == 403


def test_what_was_taken_over_stays_so_when_the_server_is_killed(place: Place) -> None:
    with place.user("cy") as cy:
        cy.take(place.fit)
    place.server.kill()
    place.server.start()
    with place.user("cy") as cy:
        assert cy.job(place.fit)["answers"] == "cy"


def test_who_is_there_keeps_their_work(place: Place) -> None:
    with place.user("bo") as bo:
        status, said = refused(lambda: bo.take(place.dees))
    assert status == 409
    assert said == (
        f"dee answers for job {place.dees}, and is here; "
        "it can be taken once they have left ([user.dee] left = true)"
    )


def test_take_says_what_came_of_it(place: Place) -> None:
    done, again = place.server.muster("take", place.old), place.server.muster("take", place.old)
    said = f"{place.old} old  is yours to answer for.  What is it? muster show {place.old}\n"
    assert (done.returncode, done.stdout) == (0, said)
    assert (again.returncode, again.stderr) == (1, f"muster: you answer for job {place.old} already\n")
    assert "answers for it  dee" in place.server.muster("show", place.dees).stdout


def test_what_a_renamed_person_had_is_still_theirs(place: Place) -> None:
    with place.user("annabel") as annabel, place.user("eve") as eve:
        assert [one["id"] for one in annabel.jobs(mine=True)] == [place.renamed]
        assert [one["id"] for one in eve.jobs(owner="annabel")] == [place.renamed]
        assert b"".join(annabel.logs(place.renamed)) == b""
        assert refused(lambda: b"".join(eve.logs(place.renamed)))[0] == 403
        assert annabel.stop(place.renamed)["state"] in ("STOPPING", "ENDED")


def test_a_look_at_a_charter_changes_nothing_and_tells_each_field(place: Place) -> None:
    with place.server.client() as client:

        def look(give_up: str | None = None, **options: object) -> dict[str, Any]:
            return client.post(
                "/charter", {"job": {"command": ["true"], "options": options}, "give_up": give_up}
            )

        before = client.health()["waiting"], len(client.jobs(all=True))
        found = look()
        assert (found["require"], found["name"], found["missing"]) == ("warn", "true", ["purpose", "end"])
        assert (found["asks"], found["problems"], found["meant"]) == (["for", "success", "give_up"], {}, {})
        wrong = look("soonish", **{"for": "test", "success": "a >>= 1", "budget": "much"})["problems"]
        assert set(wrong) == {"for", "success", "budget", "give_up"}
        for answer, option in (
            ("8h", "time"),
            ("2099-01-01", "until"),
            ("2 GPUh", "budget"),
            ("a < 1", "failure"),
        ):
            assert look(answer)["meant"] == {option: answer}
        assert look("8h", **{"for": PURPOSE})["missing"] == []
        assert look("8h")["time_limit_seconds"] == 8 * 3600
        assert refused(lambda: look(memory="lots"))[0] == 400
        assert refused(lambda: look(team="nobody's"))[0] == 403
        assert (client.health()["waiting"], len(client.jobs(all=True))) == before
