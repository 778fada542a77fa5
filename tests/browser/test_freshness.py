"""The page says how old its truth is, and does not pretend when the stream is lost."""

from conftest import Look  # type: ignore[import-not-found]


def test_a_live_page_says_so_and_shows_what_happens(look: Look) -> None:
    looking = look("laptop")
    page = looking.at("/")
    assert "live" in page.locator("#fresh").inner_text()
    with looking.world.client() as client:
        job = client.submit(["sleep", "1000"], purpose="Does the page see me come?", cpus=0.1)["id"]
        page.wait_for_selector("text=Does the page see me come?", timeout=15_000)
        client.stop(job)
    looking.check()


def test_what_somebody_types_survives_what_happens(look: Look) -> None:
    looking = look("laptop")
    page = looking.at("/")
    page.fill("#find", "half a word")
    with looking.world.client() as client:
        job = client.submit(["sleep", "1000"], purpose="Does this disturb anybody?", cpus=0.1)["id"]
        page.wait_for_selector("text=Does this disturb anybody?", timeout=15_000)
        assert page.input_value("#find") == "half a word"
        client.stop(job)


def test_a_lost_stream_greys_the_page_and_one_that_is_back_lights_it(look: Look) -> None:
    looking = look("laptop")
    page = looking.at("/")
    page.context.set_offline(True)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_selector("html[data-stream=lost]", timeout=15_000)
    assert "not live: as of" in page.locator("#fresh").inner_text()
    page.context.set_offline(False)
    page.wait_for_selector("html[data-stream=live]", timeout=20_000)
