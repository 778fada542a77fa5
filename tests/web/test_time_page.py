"""Time as people look at it: who had what and when, who has it now, and what is planned."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.units import DAY, HOUR
from muster.server.seeing.time_answers import Bar, Kind, TimeBy, TimeJob, Timeline, TimeRow
from muster.web.axis import ticks
from muster.web.gantt import drawn, spans_of
from muster.web.hues import OTHERS, Hues, definitions
from muster.web.pages.time import Asked, asked_in, is_span, panned
from servers import Server, until
from visitor import Visitor

NOW = 1_800_000_000.0
EVIL = '"><script>alert(1)<img src=x onerror=alert(2)>'
SVG = "{http://www.w3.org/2000/svg}"


def timeline(*rows: TimeRow, by: TimeBy = TimeBy.NODE, **more: object) -> Timeline:
    jobs = {"7": TimeJob("train", "ana", "vision", 4.0), "8": TimeJob(EVIL, "ben", "nlp", 1.0)}
    times = (NOW - DAY, NOW + DAY / 4, NOW)
    return Timeline("Said.", by, *times, 108.0, list(rows), jobs, [], 0, 0, 0)


def row(name: str, *bars: Bar, rack: str | None = "R1") -> TimeRow:
    return TimeRow(name, name, None, rack, 1, list(bars))


def past(start: float, end: float, job: str = "7", how: str = "won") -> Bar:
    return Bar(NOW + start, NOW + end, Kind.PAST, job, 1, how=how)


def running(start: float, end: float, job: str = "7", latest: float | None = None) -> list[Bar]:
    rest = Bar(NOW, NOW + end, Kind.PREDICTED, job, 1, latest=None if latest is None else NOW + latest)
    return [Bar(NOW + start, NOW, Kind.RUNNING, job, 1), rest]


def links(markup: str) -> list[ET.Element]:
    return ET.fromstring(markup).findall(".//a[@class='span']")


def kinds(link: ET.Element) -> list[str]:
    return [one.get("class", "") for one in link if one.get("class")]


# --- The picture ----------------------------------------------------------------------------------------


def test_what_runs_is_one_mark_solid_until_now_and_shaded_to_its_end_with_its_limit() -> None:
    picture = drawn(timeline(row("n1", *running(-HOUR, HOUR, latest=3 * HOUR))), "team", {})
    [link] = links(picture.bars)
    assert kinds(link) == ["running h0", "ahead h0", "shade", "limit", "limit"]
    assert link.get("href") == "/job/7"
    words = link.get("aria-label") or ""
    assert words.startswith("job 7 train of ana (vision), 4 GPUs on n1: runs since ")
    assert "likely until" in words
    assert "at the latest" in words
    assert link.findtext("title") == words


def test_what_is_over_says_how_it_went_and_what_is_planned_is_dashed() -> None:
    plan = Bar(NOW + HOUR, NOW + 2 * HOUR, Kind.PREDICTED, "8", 1, firm=True)
    picture = drawn(timeline(row("n1", past(-2 * HOUR, -HOUR), plan)), "how", {})
    over, planned = links(picture.bars)
    assert kinds(over) == ["past h2"]
    assert (over.get("aria-label") or "").endswith(", won")
    assert kinds(planned) == ["planned h0 firm"]
    assert "promised to start by" in (planned.get("aria-label") or "")
    assert picture.keys == [(0, "runs"), (2, "won")]


def test_an_outage_leads_to_the_map_and_many_short_ones_to_a_nearer_look() -> None:
    out = Bar(NOW - 9 * HOUR, NOW, Kind.OUT, how="down", because="a fan")
    short = Bar(NOW - DAY, NOW - 23 * HOUR, Kind.SHORT, count=40)
    first, second = links(drawn(timeline(row("n1", out, short)), "team", {"by": "gpu"}).bars)
    assert (first.get("href") or "").startswith("/time?by=gpu&node=n1&since=")
    assert "40 attempts together" in (first.get("aria-label") or "")
    assert second.get("href") == "/where?node=n1"
    assert (second.get("aria-label") or "").endswith("a fan")
    assert kinds(second) == ["out"]


def test_what_runs_and_its_remainder_stay_in_one_lane() -> None:
    bars = [*running(-9 * HOUR, 5 * HOUR, "7"), *running(-8 * HOUR, HOUR, "8")]
    lanes = {span.bar.job: (span.lane, span.rest is not None) for span in spans_of(bars)}
    assert lanes == {"7": (0, True), "8": (1, True)}


def test_words_are_escaped_everywhere() -> None:
    rows = [TimeRow(EVIL, EVIL, None, EVIL, 1, [past(-9 * HOUR, -HOUR, "8")])]
    for by in TimeBy:
        picture = drawn(timeline(*rows, by=by), "owner", {})
        for markup in (picture.labels, picture.bars, picture.axis):
            assert "<script" not in markup
            ET.fromstring(markup)


@given(
    st.lists(
        st.tuples(st.floats(-2, 1), st.floats(0, 2), st.sampled_from(list(Kind)), st.sampled_from("789")),
        max_size=12,
    )
)
def test_every_mark_is_inside_whatever_is_asked(bars: list[tuple[float, float, Kind, str]]) -> None:
    made = [Bar(NOW + a * DAY, NOW + (a + b) * DAY, kind, job, n) for n, (a, b, kind, job) in enumerate(bars)]
    picture = ET.fromstring(drawn(timeline(row("n1", *made)), "team", {}).bars)
    high = float(picture.get("height", ""))
    for rect in picture.iter("rect"):
        across = [rect.get(name, "0").removesuffix("%") for name in ("x", "width")]
        assert sum(map(float, across)) <= 100.2
        assert float(rect.get("y", "")) + float(rect.get("height", "")) <= high


# --- Axis and hues --------------------------------------------------------------------------------------


@given(st.floats(1e9, 2e9), st.floats(120, 1e8), st.integers(2, 12))
def test_ticks_are_inside_in_order_and_few(since: float, span: float, most: int) -> None:
    found = [tick.at for tick in ticks(since, since + span, most)]
    assert found == sorted(found)
    assert all(since <= at < since + span for at in found)
    assert len(found) <= most + 2


def test_those_who_have_most_have_a_hue_and_the_others_share_the_last() -> None:
    hues = Hues({f"n{n}": float(100 - n) for n in range(12)})
    assert [hues.of(f"n{n}") for n in (0, 6, 7, 11)] == [0, 6, OTHERS, OTHERS]
    assert (hues.keys[-1].name, len(hues.keys)) == ("5 others", 8)
    assert Hues({f"n{n}": 1.0 for n in range(8)}).of("n7") == OTHERS
    assert len(ET.fromstring(definitions())) == 8


# --- The address ----------------------------------------------------------------------------------------


def test_an_address_that_says_nothing_means_the_usual() -> None:
    assert asked_in({"by": "", "colour": " ", "limit": ""}) == Asked()
    asked = asked_in({"by": "team", "since": "7d"})
    assert asked.painted == "owner"
    assert asked.url(colour="how") == "/time?by=team&since=7d&colour=how"


def test_one_may_go_back_and_not_beyond_what_is_planned() -> None:
    found = timeline()
    assert (
        panned(found, Asked())["earlier"]
        == f"/time?since={NOW - DAY - 54000:.0f}&until={NOW + 6 * HOUR - 54000:.0f}"
    )
    assert is_span(found, DAY)
    ahead = Timeline("", TimeBy.NODE, NOW, NOW + DAY, NOW, 1.0, [], {}, [], 0, 0, 0)
    assert panned(ahead, Asked())["later"] == ""


# --- The page -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server("--http", "127.0.0.1:0")
    (server.home.path / "muster.toml").write_text("[node]\ngpus = 2\n[team.vision]\n")
    with server:
        small = {"cpus": 0.1, "memory": "20M", "team": "vision", "time": "2h"}
        job = server.sh("sleep 600", name=EVIL, gpus=1, **small)["id"]
        over = server.sh("true", name="over", gpus=1, **small)["id"]
        with server.client() as client:
            until(lambda: client.job(job)["state"] == "RUNNING", "its start")
            until(lambda: client.job(over)["state"] == "ENDED", "its end")
        yield server


@pytest.fixture
def visitor(server: Server) -> Visitor:
    return Visitor(server)


@pytest.mark.parametrize(
    "query", ["", "?by=gpu", "?by=team", "?by=owner&colour=how", "?since=6h&until=%2B2h"]
)
def test_the_page_draws_who_had_what(visitor: Visitor, query: str) -> None:
    page = visitor.get(f"/time{query}")
    assert page.status == 200
    tags = page.tags()
    assert [a for tag, a in tags if tag == "a" and (a.get("href") or "").startswith("/job/")]
    assert all(a.get("src", "").startswith("/static/") for tag, a in tags if tag == "script")
    assert not [tag for tag, a in tags if "onerror" in a or "style" in a or tag == "img"]
    ids = [a["id"] for _, a in tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert re.search(r"now \d\d:\d\d", page.words)


def test_the_twins_have_the_same_bars(visitor: Visitor) -> None:
    data = json.loads(visitor.get("/time.json").text)
    lines = visitor.get("/time.csv").text.splitlines()
    assert lines[0].startswith("row,rack,kind,start,end,latest,job")
    assert len(lines) == 1 + sum(len(row["bars"]) for row in data["rows"])
    assert data["sentence"] in visitor.get("/time.txt").text


def test_the_furthest_that_one_may_look_ahead_is_a_page_too(visitor: Visitor) -> None:
    now = json.loads(visitor.get("/time.json").text)["now"]
    page = visitor.get(f"/time?since={now - 60:.0f}&until={now + DAY:.0f}")
    assert page.status == 200
    assert "later →" not in page.words
    assert "earlier" in page.words


def test_a_time_that_is_over_is_not_said_to_last_until_now(visitor: Visitor) -> None:
    said = json.loads(visitor.get("/time.json?since=1000000&until=1100000").text)["sentence"]
    assert re.match(
        r"Between 1970-01-12 .* and 1970-01-13 .* 0 attempts ran that are over, and 1 runs now", said
    )


def test_what_does_not_exist_is_refused_and_an_empty_time_is_said(visitor: Visitor) -> None:
    assert visitor.get("/time?node=nowhere").status == 400
    page = visitor.get("/time?since=1000000&until=1100000")
    assert page.status == 200
    assert "Nothing ran here in this time" in page.words
