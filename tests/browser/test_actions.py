"""What people do from pages: each as whoever is signed in, with the rights that they have anywhere else."""

import time
from collections.abc import Iterator

import pytest
from looking import Look
from playwright.sync_api import Page
from sights import HERE, World

from muster.client import Client
from servers import until

LATER = time.strftime("%Y-%m-%d", time.localtime(time.time() + 20 * 86_400))
PATIENCE_MS = 20_000


@pytest.fixture
def here(worlds: object) -> World:
    place: World = worlds("site")  # type: ignore[operator]
    return place


@pytest.fixture
def client(here: World) -> Iterator[Client]:
    """Whose jobs are over afterwards, and whose machine is open."""
    with here.client() as made:
        yield made
        if made.nodes()[0]["health"] == "drained":
            made.resume_node(HERE)
        for view in made.jobs():
            made.stop(view["id"], grace_seconds=0)


def running(client: Client, **options: object) -> str:
    job = str(client.submit(["sleep", "1000"], **{"cpus": 0.1, "memory": "20M", **options})["id"])
    until(lambda: client.job(job)["state"] == "RUNNING", "its start")
    return job


def open_form(page: Page, word: str) -> None:
    page.locator("details.do:not([open]) > summary", has_text=word).first.click()


def told(page: Page, sentence: str) -> None:
    page.locator(f"css=body :text({sentence!r}):visible").first.wait_for(timeout=PATIENCE_MS)


def test_the_link_signs_in_once_and_signing_out_ends_the_session_everywhere(look: Look, here: World) -> None:
    looking, link = look(here, signed_in=False), here.link("ana")
    page = looking.page
    page.goto(here.url + "/queue")
    told(page, "you are not signed in")
    page.goto(link)
    page.get_by_role("button", name="Sign in as ana").click()
    page.wait_for_url(here.url + "/")
    assert "ana" in page.locator(".who").inner_text()
    kept = looking.context.cookies()
    page.goto(link)
    told(page, "this link was used or is too old")
    page.goto(here.url + "/")
    page.get_by_role("button", name="sign out").click()
    told(page, "you are not signed in")
    looking.context.add_cookies(kept)  # as if somebody had copied it
    page.goto(here.url + "/")
    told(page, "you were signed in, and no longer are")


def test_a_job_is_stopped_by_keys_alone_and_the_page_follows_it_to_its_end(
    look: Look, here: World, client: Client
) -> None:
    job = running(client, name="mortal")
    looking = look(here)
    page = looking.at(f"/job/{job}")
    page.locator("summary", has_text="Stop…").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("wrong data")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    told(page, "wrong data")
    page.wait_for_selector("#state:has-text('wrong data'), #story:has-text('wrong data')")
    page.wait_for_selector("text=How it ended", timeout=PATIENCE_MS)
    assert client.job(job)["state"] == "ENDED"
    looking.check()


def test_a_page_that_somebody_only_watches_shows_the_end_by_itself(
    look: Look, here: World, client: Client
) -> None:
    job = running(client, name="watched")
    page = look(here).at(f"/job/{job}")
    assert "How it ends" in page.locator("#charter").inner_text()
    page.evaluate("window.isTheSame = true")
    client.stop(job, because="told elsewhere", grace_seconds=0)
    page.wait_for_selector("#charter:has-text('How it ended')", timeout=PATIENCE_MS)
    assert page.evaluate("window.isTheSame")


def test_a_job_gets_other_terms_from_its_page(look: Look, here: World, client: Client) -> None:
    job = running(client, time="1h")
    looking = look(here)
    page = looking.at(f"/job/{job}")
    open_form(page, "Extend…")
    page.fill("#extend-time", "+2h")
    page.fill("#extend-budget", "7 CPUh")
    page.fill("#extend-because", "the loss still falls")
    page.get_by_role("button", name="Extend it").click()
    told(page, "7 CPUh")
    assert client.job(job)["time_limit_seconds"] == 3 * 3600
    looking.check()


def test_what_is_refused_stays_in_the_form_with_its_sentence_and_is_defended_when_it_is_right(
    look: Look, here: World, client: Client
) -> None:
    job = running(client, name="forgotten", gpus=1)
    page = look(here).at("/review")
    item = page.get_by_role("article", name="forgotten")
    assert "? undefended" in item.inner_text()
    item.locator("summary", has_text="defend").click()
    item.locator("textarea[name=because]").first.fill("no")
    item.locator("input[name=until]").first.fill(LATER)
    item.get_by_role("button", name="Defend it").click()
    item.locator(".wrong", has_text="say in a sentence").wait_for()
    assert item.locator("textarea[name=because]").first.input_value() == "no"
    assert page.evaluate("document.activeElement.name") == "because"
    item.locator("textarea[name=because]").first.fill("it is the baseline of all others")
    item.get_by_role("button", name="Defend it").click()
    told(page, "it is the baseline of all others")
    assert "? undefended" not in page.get_by_role("article", name="forgotten").inner_text()
    [found] = [one for one in client.review()["items"] if job in one["jobs"]]
    assert found["defences"][0]["because"] == "it is the baseline of all others"


def test_an_item_is_amended_and_another_stopped_from_the_review(
    look: Look, here: World, client: Client
) -> None:
    kept, gone = running(client, name="kept"), running(client, name="gone")
    looking = look(here)
    page = looking.at("/review")
    item = page.get_by_role("article", name="kept")
    item.locator("summary", has_text="amend").click()
    form = item.locator("details[open] form")
    form.locator("[name=because]").fill("one more night")
    form.locator("[name=budget]").fill("9 CPUh")
    form.get_by_role("button", name="Amend it").click()
    told(page, "9 CPUh")
    assert client.job(kept)["budget"]["text"] == "9 CPUh"
    item = page.get_by_role("article", name="gone")
    item.locator("summary", has_text="stop").click()
    item.get_by_role("button", name=f"Stop {gone}").click()
    until(lambda: client.job(gone)["state"] == "ENDED", "its end")
    looking.check()


def test_a_waiting_job_is_held_released_and_withdrawn_in_the_queue(
    look: Look, here: World, client: Client
) -> None:
    running(client, gpus=4)
    job = client.submit(["true"], gpus=4, name="patient")["id"]
    looking = look(here)
    page = looking.at("/queue")
    row = page.locator(f"#row-{job}")
    row.get_by_role("button", name="hold").click()
    row.locator(".tag", has_text="held").wait_for(timeout=PATIENCE_MS)
    assert client.job(job)["state"] == "HELD"
    row.get_by_role("button", name="release").click()
    row.get_by_role("button", name="hold").wait_for(timeout=PATIENCE_MS)
    assert client.job(job)["state"] == "QUEUED"
    row.get_by_role("button", name="stop").click()
    row.wait_for(state="detached", timeout=PATIENCE_MS)
    assert client.job(job)["state"] == "ENDED"
    looking.check()


def test_an_effort_is_paused_resumed_and_closed_with_what_came_out(
    look: Look, here: World, client: Client
) -> None:
    client.post("/efforts", {"name": "sizes", "charter": {"for": "Does size matter?"}})
    job = running(client, effort="sizes")
    looking = look(here)
    page = looking.at("/effort/sizes")
    open_form(page, "Pause…")
    page.fill("#pause-because", "we wait for data")
    page.get_by_role("button", name="Pause it").click()
    told(page, "we wait for data")
    page.get_by_role("button", name="Let it go on").click()
    page.wait_for_selector("h1:has-text('under way')")
    open_form(page, "Close…")
    page.get_by_role("radio", name="won").check()
    page.fill("#close-because", "it does, by 2 points")
    page.get_by_role("button", name="Close it").click()
    page.wait_for_selector("h1:has-text('won')", timeout=PATIENCE_MS)
    assert "it does, by 2 points" in page.locator("#charter").inner_text()
    until(lambda: client.job(job)["state"] == "ENDED", "the end of its job")
    looking.check()


def test_a_machine_is_drained_and_let_in_again_from_the_map(look: Look, here: World, client: Client) -> None:
    looking = look(here)
    page = looking.at(f"/where?node={HERE}")
    page.locator("summary", has_text="Drain it").click()
    page.fill(".machine [name=because]", "a fan is loud")
    page.get_by_role("button", name="drain").click()
    told(page, "a fan is loud")
    page.wait_for_selector("#map a.node[aria-current] .gpu[data-state=drained]", timeout=PATIENCE_MS)
    assert client.nodes()[0]["health"] == "drained"
    page.get_by_role("button", name="let jobs start here again").click()
    page.wait_for_selector("summary:has-text('Drain it')", timeout=PATIENCE_MS)
    assert client.nodes()[0]["health"] != "drained"
    looking.check()


def test_who_has_no_right_sees_no_button_and_a_forged_form_is_refused(
    look: Look, here: World, client: Client
) -> None:
    job = running(client, name="not-yours", team="vision")
    looking = look(here, as_user="eve")
    page = looking.at(f"/job/{job}")
    assert "may act on it" in page.locator("#acts").inner_text()
    assert not page.locator("#acts form").count()
    assert not looking.at("/queue").locator(f"#rows form[action*='/{job}/']").count()
    assert not looking.at("/review").locator(f"form[action*='/{job}/']").count()
    assert not looking.at(f"/where?node={HERE}").locator(".machine form").count()
    word = page.locator("footer input[name=word]").get_attribute("value") or ""
    for forged, status in (({"word": word}, 403), ({"word": "0" * 64}, 403), ({}, 403)):
        for what in (f"jobs/{job}/stop", f"nodes/{HERE}/drain"):
            answer = page.request.post(
                f"{here.url}/do/{what}",
                form={**forged, "because": "so"},
                headers={"accept": "application/json"},
            )
            assert answer.status == status, (what, answer.text())
    assert client.job(job)["state"] == "RUNNING"


def test_a_form_of_another_site_does_nothing(look: Look, here: World, client: Client) -> None:
    """The browser sends no cookie with it, and says from where it comes."""
    job = running(client)
    looking = look(here)
    looking.at("/")
    page = looking.page
    page.route(
        "http://127.0.0.1:9/*", lambda route: route.fulfill(content_type="text/html", body=_trap(here, job))
    )
    page.goto("http://127.0.0.1:9/")
    page.locator("button").click()
    page.wait_for_load_state()
    assert client.job(job)["state"] == "RUNNING"


def _trap(here: World, job: str) -> str:
    return f'<form method="post" action="{here.url}/do/jobs/{job}/stop"><button>win</button></form>'
