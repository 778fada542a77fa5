"""The page says how old its truth is, and does not pretend when the stream is lost."""

import socket
from collections.abc import Iterator

import pytest
from looking import Look
from sights import World

from servers import Server

PATIENCE_MS = 30_000


def test_a_live_page_says_so_and_what_somebody_types_survives_what_happens(look: Look) -> None:
    looking = look("laptop")
    page = looking.at("/")
    assert "live" in page.locator("#fresh").inner_text()
    page.fill("#find", "half a word")
    with looking.world.client() as client:
        job = client.submit(["sleep", "1000"], purpose="Does the page see me come?", cpus=0.1)["id"]
        page.wait_for_selector("text=Does the page see me come?", timeout=PATIENCE_MS)
        assert page.input_value("#find") == "half a word"
        client.stop(job)
    looking.check()


@pytest.fixture
def mortal() -> Iterator[Server]:
    """A server that comes back to where it was."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with Server("--http", f"127.0.0.1:{port}") as server:
        yield server


def test_a_page_of_a_dead_server_turns_grey_and_goes_on_when_it_is_back(look: Look, mortal: Server) -> None:
    """A table stays as it is and goes on; a map, whose places may have other numbers now, is loaded anew."""
    world = World(mortal.url, mortal.home.path)
    table, drawn = look(world).at("/queue"), look(world).at("/where")
    for page in (table, drawn):
        page.evaluate("window.isTheSame = true")
    mortal.kill()
    for page in (table, drawn):
        page.wait_for_selector("html[data-stream=lost]", timeout=PATIENCE_MS)
        assert "not live: as of" in page.locator("#fresh").inner_text()
        assert "grayscale" in page.evaluate("getComputedStyle(document.querySelector('main')).filter")
    mortal.start()
    for page in (table, drawn):
        page.wait_for_selector("html[data-stream=live]", timeout=PATIENCE_MS)
    assert table.evaluate("window.isTheSame")
    assert drawn.evaluate("window.isTheSame") is None
    with world.client() as client:
        client.submit(["true"], purpose="Does the table go on?", hold=True)
        table.wait_for_selector("text=Does the table go on?", timeout=PATIENCE_MS)
