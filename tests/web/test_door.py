"""Signing in and out, forms that only our pages can send, and headers that keep pages to themselves."""

import re
from collections.abc import Iterator

import pytest

from muster.client import Client
from servers import Server
from visitor import Visitor


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("--http", "127.0.0.1:0") as made:
        yield made


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with server.client() as made:
        yield made


@pytest.fixture
def visitor(server: Server) -> Visitor:
    return Visitor(server)


def test_who_is_not_signed_in_is_told_how_and_sees_nothing(server: Server) -> None:
    answer = Visitor(server, signed_in=False).get("/")
    assert answer.status == 401
    assert "muster web" in answer.words
    assert "Running" not in answer.words


def test_the_link_asks_first_and_the_button_signs_in(server: Server, client: Client) -> None:
    link, stranger = client.web_link()["urls"][0], Visitor(server, signed_in=False)
    asked = stranger.get("/sign-in?" + link.partition("?")[2])
    assert asked.status == 200
    assert "Sign in as" in asked.words
    assert "set-cookie" not in asked.headers, "looking at a link signs nobody in"
    assert stranger.sign_in(link).status == 303
    assert stranger.get("/").status == 200


def test_a_link_is_good_once(server: Server, client: Client) -> None:
    link = client.web_link()["urls"][0]
    assert Visitor(server, signed_in=False).sign_in(link).status == 303
    again = Visitor(server, signed_in=False)
    assert again.sign_in(link).status == 401
    assert again.get("/").status == 401


def test_a_made_up_link_and_a_made_up_cookie_are_refused(server: Server) -> None:
    stranger = Visitor(server, signed_in=False)
    assert stranger.get("/sign-in?code=guess").status == 401
    stranger.cookie = "muster=mst_guess"
    assert stranger.get("/").status == 401


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(server: Server, client: Client) -> None:
    given = Visitor(server, signed_in=False).sign_in(client.web_link()["urls"][0]).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Secure", "Path=/"} <= set(given.split("; "))


def test_signing_out_ends_the_session_wherever_its_cookie_is(visitor: Visitor) -> None:
    kept = visitor.cookie
    assert visitor.post("/sign-out", {}).status == 303
    visitor.cookie = kept
    assert visitor.get("/").status == 401


def test_a_session_outlives_the_server(server: Server, visitor: Visitor) -> None:
    server.terminate()
    server.start()
    visitor.host = server.url.removeprefix("http://")
    assert visitor.get("/").status == 200


def test_a_form_without_the_sessions_word_changes_nothing(server: Server, client: Client) -> None:
    job = client.submit(["sleep", "100"])["id"]
    visitor = Visitor(server)
    for form in ({"word": ""}, {"word": "0" * 64}, {"word": Visitor(server).word}):
        assert visitor.post(f"/do/jobs/{job}/stop", form, word=False).status == 403
    assert client.job(job)["state"] != "ENDED"
    assert not client.job(job)["reason"]
    client.stop(job)


def test_a_form_that_another_site_sent_changes_nothing(server: Server, client: Client) -> None:
    job, visitor = client.submit(["sleep", "100"])["id"], Visitor(server)
    refused = visitor.post(f"/do/jobs/{job}/stop", {}, **{"sec-fetch-site": "cross-site"})
    assert refused.status == 403
    client.stop(job)


def test_a_form_does_what_the_command_line_does_and_goes_back(server: Server, client: Client) -> None:
    job, visitor = client.submit(["sleep", "100"])["id"], Visitor(server)
    answer = visitor.post(f"/do/jobs/{job}/stop", {"because": "wrong data", "back": "/find?q=sleep"})
    assert (answer.status, answer.headers["location"]) == (303, "/find?q=sleep")
    assert "wrong data" in client.wait(job)["reason"]


@pytest.mark.parametrize(
    "back", ["//elsewhere.example", "https://elsewhere.example/", "/\\elsewhere", "a\r\nb: c"]
)
def test_a_form_never_leads_elsewhere(server: Server, client: Client, back: str) -> None:
    job, visitor = client.submit(["sleep", "100"])["id"], Visitor(server)
    assert visitor.post(f"/do/jobs/{job}/stop", {"back": back}).headers["location"] == "/"


def test_what_a_form_gets_wrong_is_said_in_one_sentence(visitor: Visitor) -> None:
    answer = visitor.post("/do/jobs/4711/stop", {}, accept="application/json")
    assert answer.status == 404
    assert "4711" in answer.text
    page = visitor.post("/do/jobs/4711/stop", {})
    assert page.status == 404
    assert "4711" in page.words


@pytest.mark.parametrize("path", ["/do/tokens", "/do/down", "/do/jobs", "/do/../down", "/nowhere"])
def test_forms_do_only_what_they_are_for(visitor: Visitor, path: str) -> None:
    assert visitor.post(path, {"user": "root"}).status in (400, 404, 405)


@pytest.mark.parametrize("path", ["/", "/sign-in?code=x", "/nowhere", "/static/none.js"])
def test_every_answer_keeps_browsers_from_other_sites_and_inline_scripts(visitor: Visitor, path: str) -> None:
    headers = visitor.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_pages_load_nothing_from_elsewhere_and_run_nothing_inline(visitor: Visitor) -> None:
    for tag, attributes in visitor.get("/").tags():
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        for name in ("src", "href", "action"):
            assert (attributes.get(name) or "/").startswith(("/", "#")), (tag, attributes)
        if tag == "script":
            assert attributes.get("src")


def test_what_pages_load_is_small_and_kept_by_the_browser(visitor: Visitor) -> None:
    urls = re.findall(r'(?:src|href)="(/static/[^"]+)"', visitor.get("/").text)
    assert len(urls) >= 3
    answers = [visitor.get(url) for url in urls]
    assert all(answer.status == 200 and "immutable" in answer.headers["cache-control"] for answer in answers)


def test_the_link_is_for_whoever_asks_and_needs_no_more_than_that(server: Server) -> None:
    said = server.muster("web")
    assert said.returncode == 0
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/sign-in\?code=[\w-]+\n", said.stdout)


def test_without_an_address_there_are_no_pages_and_a_sentence_says_so() -> None:
    with Server("--http", "none") as made:
        said = made.muster("web")
        assert said.returncode == 1
        assert "--http" in said.stderr
        assert "Traceback" not in said.stderr
