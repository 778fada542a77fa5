"""What people ask for and what the engine tells, when the two cross on their way."""

import asyncio
import getpass
import os
import select
import shutil
import tempfile
from pathlib import Path

from muster.application.request import Request
from muster.engines.local.engine import LocalEngine
from muster.home import Home
from muster.model.events import Outcome
from muster.model.job import Job
from muster.model.policy import Policy
from muster.model.state import State
from muster.server.answers import JobView
from muster.server.commands import Commands
from muster.server.config_tables import Config
from muster.server.people import Person
from muster.server.service import Service
from muster.server.stewardship.efforts import Efforts
from muster.store.fold import Fold
from muster.store.journal import Journal

ME = Person(getpass.getuser(), os.geteuid(), "admin")
SLEEP = Request(command=("sleep", "60"), environment={"PATH": os.environ["PATH"]})


def job_of(fold: Fold, job_id: str) -> Job:
    record = fold.records[job_id]
    entry = record.running or record.waiting
    if entry is None:
        raise KeyError(job_id)
    return entry.job


async def settled(commands: Commands, job_id: str, state: State) -> JobView:
    for _ in range(1500):
        view = commands.view(job_id)
        if view.state is state:
            return view
        await asyncio.sleep(0.01)
    raise AssertionError(f"waited in vain for {state} of {commands.view(job_id)}")


async def stop_what_has_just_left(service: Service, commands: Commands) -> JobView:
    """The stop comes when the engine's word, that the job has left to wait again, has not been heard yet."""
    job_id = (await commands.submit(ME, SLEEP)).id
    await settled(commands, job_id, State.RUNNING)
    await commands.requeue(ME, job_id)
    select.select([service.engine.fileno()], [], [], 10.0)  # nobody else has a turn meanwhile
    await commands.stop(ME, job_id)
    return await settled(commands, job_id, State.ENDED)


def test_a_stop_that_was_acknowledged_holds_even_if_the_job_had_just_left_to_wait_again() -> None:
    home = Home(Path(tempfile.mkdtemp(prefix="muster-")))

    async def played() -> JobView:
        fold, journal = Fold(Policy()), Journal.open(f"sqlite:///{home.database}")
        engine = LocalEngine(home, lambda job_id: job_of(fold, job_id), lambda _: SLEEP.environment)
        service = Service(home, Policy(), fold, journal, engine)
        commands = Commands(service, Config(), Efforts(service, most_under_way=3))
        service.begin(())
        try:
            return await stop_what_has_just_left(service, commands)
        finally:
            service.end()
            await asyncio.sleep(0.05)  # what was written down last is still followed up
            engine.close(end_jobs=True)

    view = asyncio.run(played())
    shutil.rmtree(home.path)
    assert (view.outcome, view.attempt, view.reason) == (Outcome.STOPPED, 1, f"stopped by {ME.name}")
