"""``muster top`` at work on a real server: what is typed, what is shown, and what becomes of it."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from muster.client import Client
from muster.tui.app import TopApp
from muster.tui.seen import MAP, QUEUE, REVIEW, USE
from muster.tui.spans import plain
from servers import PATIENCE_SECONDS, Server, until

CONFIGURATION = '[node]\ncpus = 8\ngpus = 4\ngpu_model = "A40"\n'
HOSTILE = "[red]\u05e9\u05dc\u05d5\u05dd[/red] <b>" + "w" * 100
Body = Callable[[TopApp, Pilot[None]], Awaitable[None]]


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    server.home.configuration.write_text(CONFIGURATION)
    with server:
        yield server


def runs(server: Server, name: str, **options: object) -> str:
    asked = {"cpus": 1, "memory": "20M", "gpus": 1, "name": name, "purpose": f"Does {name} help?", **options}
    job = str(server.sh("echo begun; sleep 1000", **asked)["id"])
    with server.client() as client:
        until(lambda: client.job(job)["state"] in ("RUNNING", "QUEUED", "HELD"), "its start")
    return job


def watched(server: Server, body: Body) -> None:
    """Somebody at a terminal, until they have done this."""

    async def watch() -> None:
        app = TopApp({}, 0.2, None, lambda: Client(home=server.home.path))
        async with app.run_test(size=(130, 30)) as pilot:
            await body(app, pilot)

    asyncio.run(watch())


def shown(app: TopApp) -> str:
    """What is on the screen that is in front."""
    return plain(app.screen.query("Drawn").first().lines)  # type: ignore[attr-defined]


async def sees(app: TopApp, *texts: str) -> None:
    await comes(lambda: all(text in shown(app) for text in texts), lambda: f"{texts} in:\n{shown(app)}")


async def comes(true: Callable[[], bool], what: Callable[[], str]) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_SECONDS
    while not true():
        assert loop.time() < deadline, f"waited in vain for {what()}"
        await asyncio.sleep(0.02)


def test_jobs_are_filtered_opened_and_left(server: Server) -> None:
    runs(server, "finetune")
    runs(server, "notebook", gpus=2)

    async def body(app: TopApp, pilot: Pilot[None]) -> None:
        await sees(app, "4 GPU", "finetune: Does finetune help?", "notebook", "s old")
        await pilot.press("slash", *"fine tune")
        await comes(lambda: "notebook" not in shown(app), lambda: shown(app))
        assert "finetune" in shown(app)
        await pilot.press("enter", "enter")
        await sees(app, "Does finetune help?", "GPU-hours", "runs on GPU", "begun")
        await pilot.press("escape")
        await sees(app, "filter: fine tune")
        await pilot.press("escape")
        await sees(app, "notebook")

    watched(server, body)


def test_stopping_asks_why_and_does_nothing_without_an_answer(server: Server) -> None:
    job = runs(server, "finetune")

    async def body(app: TopApp, pilot: Pilot[None]) -> None:
        await sees(app, "finetune")
        await pilot.press("s", "enter")
        assert isinstance(app.screen.focused, Input)
        await pilot.press("escape")
        await pilot.press("s", *"wrong data", "enter")
        await sees(app, f"job {job} is told to end")
        await comes(lambda: "Does finetune" not in shown(app), lambda: shown(app))

    watched(server, body)
    with server.client() as client:
        ended = client.wait(job)
        assert (ended["outcome"], ended["reason"].endswith(": wrong data")) == ("STOPPED", True)


def test_a_job_is_defended_with_a_reason_and_an_end_and_refusals_are_sentences(server: Server) -> None:
    runs(server, "finetune")

    async def body(app: TopApp, pilot: Pilot[None]) -> None:
        await sees(app, "1 ?", "NEVER")  # it has no end
        await pilot.press("d", *"because", "enter", *"+7d", "enter")
        await sees(app, "because: say in a sentence why")
        await pilot.press("d", *"it still improves", "enter", *"+7d", "enter")
        await sees(app, "is defended", "today")
        assert "1 ?" not in shown(app)

    watched(server, body)


def test_a_waiting_job_is_held_and_released(server: Server) -> None:
    runs(server, "first", gpus=4)
    waiting = runs(server, "second", gpus=4)

    async def body(app: TopApp, pilot: Pilot[None]) -> None:
        await sees(app, "waits: ")
        await pilot.press("down", "h")
        await sees(app, f"job {waiting}: hold", "held")
        await comes(lambda: app.chosen() is not None and app.chosen().state == "HELD", lambda: shown(app))  # type: ignore[union-attr]
        await pilot.press("h")
        await sees(app, f"job {waiting}: release", "waits: ")

    watched(server, body)


def test_g_leads_to_the_map_the_queue_the_review_and_use(server: Server) -> None:
    runs(server, "first", gpus=4)
    runs(server, "second", gpus=4)

    async def body(app: TopApp, pilot: Pilot[None]) -> None:
        await sees(app, "first")
        for key, mode, text in (
            ("w", MAP, "each glyph is a GPU"),
            ("q", QUEUE, "second"),
            ("r", REVIEW, "KIND"),
            ("u", USE, "HELD GPUh"),
        ):
            await pilot.press("g", key)
            assert app.gaze.mode == mode
            await sees(app, text)
        await pilot.press("escape", "m")
        await sees(app, "first")
        await pilot.press("question_mark")
        await sees(app, "defend the job")
        await pilot.press("escape", "o")
        await sees(app, "ordered by: idle")

    watched(server, body)


def test_a_server_that_is_killed_is_said_to_be_away_and_comes_back_by_itself(server: Server) -> None:
    runs(server, "finetune")

    async def body(app: TopApp, _: Pilot[None]) -> None:
        await sees(app, "finetune", "s old")
        server.kill()
        await sees(app, "not live: as of ", "finetune")
        await asyncio.to_thread(server.start)
        await sees(app, "finetune", "s old")

    watched(server, body)


def test_what_people_write_is_shown_as_it_is(server: Server) -> None:
    runs(server, "x", purpose=f"What becomes of {HOSTILE}?")

    async def body(app: TopApp, pilot: Pilot[None]) -> None:
        await sees(app, "[red]\u05e9\u05dc\u05d5\u05dd[/red] <b>www")
        await pilot.press("enter")
        await sees(app, "[red]\u05e9\u05dc\u05d5\u05dd[/red] <b>")
        await pilot.press("escape", "s")
        await comes(lambda: isinstance(app.screen.focused, Input), lambda: "the question")

    watched(server, body)
