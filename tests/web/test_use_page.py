"""Use as people look at it: held against used to one scale, the quota's tick, who defends what."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.server.seeing.use_answers import UseLine, UseNode, UseSeries
from muster.web.pages.use import Asked, asked_in, chart_of, line_of, said_of
from muster.web.use_rows import FEW, Amount, Drawing, bar, in_words, table_rows, whole_bar
from servers import Server, until
from visitor import Visitor

EVIL = '"><script>alert(1)<img src=x onerror=alert(2)>'
RTL = "עברית مرحبا"
CONFIGURATION = """
[node]
gpus = 2
[team.vision]
quota = { gpus = 1 }
"""


def node(kind: str, name: str | None, held: float, used: float | None = None, **more: object) -> UseNode:
    measured = 0.0 if used is None else held
    amounts = {"gpu_held_seconds": held, "gpu_measured_seconds": measured, "gpu_used_seconds": used}
    cpus = {"cpu_held_seconds": held * 8, "cpu_measured_seconds": 0.0, "cpu_used_seconds": None}
    return UseNode(kind=kind, id=name, jobs=1, coverage=None, **amounts, **cpus, **more)


# --- A place that is in use -----------------------------------------------------------------------------


class World:
    def __init__(self, server: Server) -> None:
        self.server = server
        small = {"cpus": 0.1, "memory": "20M", "team": "vision", "time": "2h"}
        with server.client() as client:
            client.post(
                "/efforts",
                {
                    "name": "seeing",
                    "charter": {"for": "Does a larger crop beat the baseline on the held-out set?"},
                },
            )
        self.evil = server.sh("sleep 600", name=EVIL, gpus=1, purpose=f"{EVIL} why", **small)["id"]
        self.rtl = server.sh("sleep 600", name=RTL, gpus=1, effort="seeing", **small)["id"]
        with server.client() as client:
            for job in (self.evil, self.rtl):
                until(lambda job=job: client.job(job)["state"] == "RUNNING", "its start")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    server = Server("--http", "127.0.0.1:0")
    (server.home.path / "muster.toml").write_text(CONFIGURATION)
    with server:
        yield World(server)


@pytest.fixture
def visitor(world: World) -> Visitor:
    return Visitor(world.server)


def test_the_tree_goes_from_the_team_over_the_effort_to_the_job(world: World, visitor: Visitor) -> None:
    page = visitor.get("/use")
    assert page.status == 200
    links = [attrs.get("href") for tag, attrs in page.tags() if tag == "a"]
    assert f"/job/{world.evil}" in links
    assert f"/job/{world.rtl}" in links
    assert "/effort/seeing" in links
    assert "/use?group=vision#over-time" in links
    assert "metric: " in page.words
    assert "coverage" in page.words
    assert "beyond the tick: borrowed" in page.words


@pytest.mark.parametrize("path", ["/use", "/use?by=owner", "/use?by=purpose", "/use?group=%3Cscript%3E"])
def test_nothing_that_people_wrote_becomes_markup(visitor: Visitor, path: str) -> None:
    page = visitor.get(path)
    assert page.status == 200
    tags = page.tags()
    assert all(a.get("src", "").startswith("/static/") for tag, a in tags if tag == "script")
    assert not [tag for tag, a in tags if "onerror" in a or "style" in a or tag == "img"]
    ids = [a["id"] for _, a in tags if "id" in a]
    assert len(ids) == len(set(ids))


def test_the_twins_have_the_same(world: World, visitor: Visitor) -> None:
    data = json.loads(visitor.get("/use.json").text)
    assert data["tree"]["total"]["jobs"] == 2
    assert data["series"]["unit"] == "gpu"
    lines = visitor.get("/use.csv").text.splitlines()
    assert lines[0].startswith("level,kind,id,name,owner,jobs,gpu_held_seconds")
    assert any(line.startswith("1,team,vision") for line in lines)
    assert "2 jobs held" in visitor.get("/use.txt").text


def test_one_group_is_drawn_over_time_and_who_is_not_there_is_told_so(visitor: Visitor) -> None:
    assert "GPUs held and used, vision" in visitor.get("/use?group=vision").words
    assert "is not among those who held most" in visitor.get("/use?group=nobody").words


def test_a_moment_that_is_none_is_refused_in_a_sentence(visitor: Visitor) -> None:
    page = visitor.get("/use?since=yesterdayish")
    assert page.status == 400
    assert "is not a moment" in page.words


def test_before_anybody_holds_anything_the_page_says_so() -> None:
    with Server("--http", "127.0.0.1:0") as server:
        page = Visitor(server).get("/use")
    assert page.status == 200
    assert "Nothing was held" in page.words
    assert "Nobody held anything in this time" in page.words
    assert "cpu·h" in page.words, "where there are no GPUs it is drawn by cpus"


# --- Rows -----------------------------------------------------------------------------------------------


def shapes(markup: str) -> dict[str, list[ET.Element]]:
    found: dict[str, list[ET.Element]] = {}
    for element in ET.fromstring(markup):
        found.setdefault(element.get("class", ""), []).append(element)
    return found


def percent(element: ET.Element, name: str) -> float:
    return float(element.get(name, "").removesuffix("%"))


def test_a_bar_is_solid_then_hatched_then_dashed_and_marks_what_is_borrowed() -> None:
    drawn = shapes(bar(Amount(80.0, 60.0, 30.0, quota=50.0, borrowed=30.0), 100.0, "GPU·h", "vision"))
    assert [
        (percent(*drawn[k], "x"), percent(*drawn[k], "width")) for k in ("used", "idle", "unmeasured")
    ] == [
        (0, 30),
        (30, 30),
        (60, 20),
    ]
    assert (percent(*drawn["borrowed"], "x"), percent(*drawn["borrowed"], "width")) == (50, 30)
    assert percent(*drawn["tick"], "x1") == 50


def test_what_nobody_measured_is_neither_used_nor_idle() -> None:
    drawn = shapes(bar(Amount(80.0, 0.0, None), 100.0, "GPU·h", "legacy"))
    assert set(drawn) == {"unmeasured"}
    assert in_words(Amount(3600.0, 0.0, None), "GPU·h") == "1.0 GPU·h held, use not measured"


@given(
    st.floats(0, 1e9), st.floats(0, 1), st.floats(0, 1), st.none() | st.floats(0, 1e9), st.text(max_size=30)
)
def test_a_bar_stays_inside_its_frame_and_is_well_formed(
    held: float, measured: float, used: float, quota: float | None, title: str
) -> None:
    title = re.sub(r"[^\t\n\r -\ud7ff\ue000-\ufffd]", "", title)  # what XML can hold
    borrowed = max(0.0, held - quota) if quota is not None else 0.0
    amount = Amount(held, held * measured, held * measured * used, quota, borrowed)
    for markup in (
        bar(amount, max(held, quota or 0.0), "GPU·h", title),
        whole_bar(amount, held * 2, "GPU·h"),
    ):
        for element in (one for some in shapes(markup).values() for one in some if one.tag == "rect"):
            assert 0 <= percent(element, "x") <= 100
            assert percent(element, "x") + percent(element, "width") <= 100.7


def test_all_bars_have_one_scale_and_many_small_ones_are_told_in_one_line() -> None:
    jobs = [node("job", str(n), 10.0 - n, 1.0) for n in range(FEW + 4)]
    team = node("team", "vision", 100.0, 50.0, quota_gpu_seconds=200.0, children=jobs)
    drawing = Drawing.of([team], "gpu", opens=True)
    [row] = drawing.rows([team])
    assert drawing.scale == 200.0
    assert percent(*shapes(row.few[0].bar)["used"], "width") == pytest.approx(0.5)
    assert (len(row.few), len(row.others)) == (FEW, 4)
    assert row.others_held == sum(one.gpu_held_seconds for one in jobs[FEW:])
    assert (row.is_open, row.few[0].is_open) == (True, False)


def test_where_there_are_no_gpus_cpus_are_drawn() -> None:
    drawing = Drawing.of([node("owner", "ana", 10.0)], "cpu", opens=True)
    assert (drawing.scale, drawing.unit) == (80.0, "cpu·h")


def test_the_table_has_each_after_what_it_is_a_part_of() -> None:
    tree = node("total", None, 3.0, children=[node("team", "a", 2.0, children=[node("job", "7", 1.0)])])
    assert [row[:3] for row in table_rows(tree)] == [[0, "total", None], [1, "team", "a"], [2, "job", "7"]]


# --- Over time ------------------------------------------------------------------------------------------


def series() -> UseSeries:
    total = UseLine(group=None, held=[4.0, 4.0], used=[2.0, None], coverage=[1.0, 0.0])
    one = UseLine(group="", held=[1.0, 3.0], used=[1.0, None], coverage=[1.0, 0.0])
    return UseSeries("All.", "team", "gpu", "SM active", 0.0, 120.0, 60, [0.0, 60.0], 8.0, total, [one], None)


def test_the_chart_has_held_behind_used_and_all_that_there_is_as_a_line() -> None:
    chart = chart_of(series(), series().total, Asked())
    assert [(one.how, list(one.values)) for one in chart.series] == [
        ("hatched", [4.0, 4.0, 4.0]),
        ("filled", [2.0, None, None]),
    ]
    assert [mark.y for mark in chart.marks] == [8.0]
    assert "SM active" in chart.series[1].label


def test_a_group_without_a_name_is_a_group_too() -> None:
    line = line_of(series(), "")
    assert line is not None
    assert said_of(line, "GPUs") == (
        "On average 2 GPUs were held, and 100% of that was used; at most 3 were held."
    )
    assert line_of(series(), "nobody") is None
    assert Asked(group="").url() == "/use?group="


def test_an_address_that_says_nothing_means_the_usual_and_many_are_bounded() -> None:
    assert asked_in({"by": "", "limit": " ", "since": " "}) == Asked()
    assert asked_in({"limit": "99999"}).limit == 2000
    assert asked_in({"by": "owner", "since": "24h"}).url(group="ana") == "/use?since=24h&by=owner&group=ana"
