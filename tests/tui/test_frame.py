"""Frames, as text: what is on the screen follows from what is known and who looks."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from told import NOW, job, seen, strip

from muster.layout.words import width_of
from muster.tui.cluster import cluster
from muster.tui.frame import Frame, fits, frame
from muster.tui.seen import JOBS, MAP, QUEUE, REVIEW, USE, Gaze, Seen
from muster.tui.spans import bar, plain, width
from muster.tui.tables import sparkline
from muster.tui.when import clock, days_ago, since

DAY = 86400.0


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def drawn(what: Seen, gaze: Gaze | None = None, columns: int = 110, height: int | None = None) -> list[str]:
    return plain(frame(what, gaze or Gaze(), columns, NOW, height).lines).splitlines()


def styles(made: Frame, text: str) -> set[str]:
    return {style for line in made.lines for piece, style in line if text in piece}


def test_a_frame_has_the_head_the_racks_and_the_jobs() -> None:
    one = job("1", budget=0.71, defended_at=NOW - 2 * DAY)
    two = job("2", owner="ivan", name="jupyter-old", purpose=None, share=0.0, ends_at=None, undefended="yes")
    assert drawn(seen(one, two, undefended=1)) == [
        "muster top — lab 8 GPU  ■5 ▨1 □2  used 57 % of held  1 undefended  2 run, 0 wait"
        "                       1 s old",
        "R1 ▇▇▇▇ ▇▁··",
        "",
        "JOB  OWNER  PURPOSE                GPU  NODES  TRUE%  24h           BUDGET       ENDS   DEFENDED",
        "1    ana    fit: Does 8B beat 3B?    4  a1        81        ▁▃▆▁▃▆  ████░  71 %  11:04  2 d ago",
        "2 ?  ivan   jupyter-old              4  a1         0                none         never  NEVER",
    ]


def test_who_waits_says_why_and_what_is_left_out_is_counted() -> None:
    waiting = job("7", state="QUEUED", reason="no room", nodes="", share=None, started_at=None, ends_at=None)
    held = {**waiting, "id": "8", "state": "HELD", "reason": "held; release it"}
    lines = drawn(seen(waiting, held, more=1200))
    assert "waits: no room" in lines[4]
    assert "held; release it" in lines[5]
    assert lines[-1] == "… 1,200 more"


def test_nothing_at_all_is_told_in_words() -> None:
    assert drawn(seen())[-1] == "Nothing runs, and nothing waits."
    assert drawn(seen(), Gaze(match="ana"))[-1] == "Nothing is like that."


def test_a_machine_without_gpus_has_its_cpus_as_a_bar() -> None:
    cpus = {"nodes": 1, "name": "laptop", "cpus": 8.0, "held": 4.0, "used": 2.0}
    told = seen(job("1", gpus=0.0), strips=[], counts={}, share=None, cpus=cpus)
    lines = drawn(told)
    assert lines[0].startswith("muster top — lab  1 run, 0 wait")
    assert lines[1] == f"laptop  {'█' * 10}{'▒' * 10}{'░' * 20}  4 of 8 cpus held, 2.0 used"
    assert " CPU " in lines[3]


def test_a_server_that_is_away_greys_all_but_the_line_that_says_so() -> None:
    made = frame(seen(job("1"), away="gone"), Gaze(), 110, NOW, 20)
    text = plain(made.lines)
    assert "not live: as of 10:54:11" in text
    assert styles(made, "not live") == {"red"}
    assert {style for line in made.lines[1:-1] for _, style in line} == {"dim"}


def test_the_chosen_row_is_shown_however_many_there_are() -> None:
    jobs = [job(str(n)) for n in range(1, 100)]
    for cursor in (0, 50, 98):
        made = frame(seen(*jobs), Gaze(cursor=cursor), 110, NOW, 20)
        assert len(made.lines) == 20
        [marked] = [line[0][0] for line in made.lines if line and line[0][1] == "reverse"]
        assert marked.split()[0] == str(cursor + 1)
        at = made.rows_at + cursor - made.first_row
        assert made.lines[at][0][0] == marked


def test_another_view_shows_nothing_of_the_one_before() -> None:
    assert not any("ana" in line for line in drawn(seen(job("1")), Gaze(QUEUE)))


def test_the_map_alone_has_a_legend_and_says_what_a_glyph_is() -> None:
    lines = drawn(seen(mode=MAP, by="node"), Gaze(MAP))
    assert any(line.startswith("each glyph is a node") and "▨ held idle" in line for line in lines)


def test_the_map_can_be_folded_away() -> None:
    assert not any("R1" in line for line in drawn(seen(job("1")), Gaze(is_map_shown=False)))


REVIEW_TOLD: dict[str, Any] = {
    "number": 2,
    "closes_at": NOW + DAY,
    "items": [
        {
            "what": "17 jupyter-old",
            "owner": "ivan",
            "is_present": False,
            "kind": "forgotten",
            "gpu_held_seconds": 3600.0 * 1825,
            "used_share": 0.0,
            "stops": ["17"],
            "stops_at": NOW + DAY,
            "because": "its owner is not here any more",
        }
    ],
}


def test_the_review_says_what_stops_when_and_why() -> None:
    told = Seen(seen().top, REVIEW, NOW, review=REVIEW_TOLD)
    lines = drawn(told, Gaze(REVIEW))
    assert lines[2] == "Review 2 closes Tue 10:54; 1 undefended."
    assert (
        " ".join(lines[-1].split())
        == "? 17 jupyter-old ivan (left) forgotten 1,825 0 % Tue 10:54 its owner is not here any more"
    )


def test_use_is_held_against_used_by_team() -> None:
    row = {
        "group": "nlp",
        "gpu_held_seconds": 36000.0,
        "gpu_measured_seconds": 36000.0,
        "gpu_used_seconds": 18000.0,
        "coverage": 1.0,
    }
    told = Seen(seen().top, USE, NOW, use={"rows": [row], "total": row})
    assert drawn(told, Gaze(USE))[-1].split() == [
        "nlp",
        "█" * 20 + "▒" * 20,
        "10.0",
        "5.00",
        "50",
        "%",
        "100",
        "%",
    ]


# --- Room -----------------------------------------------------------------------------------------------


def delta() -> dict[str, Any]:
    word, states = " ".join(["▇▇▁·"] * 10), " ".join(["■■▨□"] * 10)
    return seen(strips=[strip(f"R{n:02}", word, states) for n in range(1, 11)]).top


def test_delta_fits_a_usual_terminal() -> None:
    assert len(cluster(delta(), 120)) == 5
    assert len(cluster(delta(), 80)) == 10
    assert fits(delta(), Gaze(), 120, 36)
    assert fits(delta(), Gaze(), 80, 28)
    assert not fits(delta(), Gaze(), 80, 20)
    assert fits(delta(), Gaze(MAP), 80, 20)


def test_a_rack_that_is_too_wide_goes_on_below() -> None:
    lines = plain(cluster(delta(), 40)).splitlines()
    assert lines[0] == "R01 " + " ".join(["▇▇▁·"] * 7)
    assert lines[1] == "    " + " ".join(["▇▇▁·"] * 3)


# --- Small things ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shares", "cells", "said"),
    [
        (None, 4, "    "),
        ([0.0, 1.0, None, 0.5], 4, "▁▇ ▄"),
        ([0.0, 1.0, None, 0.5], 2, "▄▄"),
        ([1.0], 3, "  ▇"),
    ],
)
def test_a_sparkline_is_as_high_as_what_was_used(
    shares: list[float | None] | None, cells: int, said: str
) -> None:
    assert sparkline(shares, cells) == said


def test_times_are_short() -> None:
    assert [since(NOW - s, NOW) for s in (0, 59, 61, 7300, 3 * DAY)] == ["0 s", "59 s", "1 min", "2 h", "3 d"]
    assert [days_ago(NOW - s, NOW) for s in (0, 11 * 3600, 2 * DAY)] == ["today", "1 d ago", "2 d ago"]
    assert [clock(NOW + s, NOW) for s in (0, DAY, 9 * DAY)] == ["10:54", "Tue 10:54", "25 Nov"]


def test_a_bar_has_what_is_beside_and_never_more_than_its_room() -> None:
    assert bar(0.5, 4, 0.25) == "██▒░"
    assert bar(7.0, 4) == "████"


# --- Anybody's text -------------------------------------------------------------------------------------

HOSTILE = st.text(max_size=200) | st.sampled_from(
    ["[red]x[/red]", "\x1b[2J\x1b]0;owned\x07", "שלום " * 40, "\u202eevil", "界" * 100, "a\nb\tc", "W" * 200]
)


@given(text=HOSTILE, columns=st.integers(20, 200), height=st.integers(3, 60))
def test_whatever_people_write_no_line_is_too_wide_and_nothing_in_it_is_obeyed(
    text: str, columns: int, height: int
) -> None:
    hostile = {"name": text, "owner": text, "purpose": text, "nodes": text, "reason": text}
    told = seen(
        job("1", **hostile),
        job("2", **hostile, state="QUEUED"),
        site=text,
        strips=[strip("R1", "▇", "■") | {"name": text}],
    )
    for mode in (JOBS, MAP):
        made = frame(looked_at_as(told, mode), Gaze(mode, match=text, notice=text), columns, NOW, height)
        assert len(made.lines) == height
        for line in made.lines:
            assert width(line) <= columns
            assert all(piece.isprintable() for piece, _ in line)


def looked_at_as(told: Seen, mode: str) -> Seen:
    return Seen(told.top, mode, told.at, told.sparks)


def test_markup_stays_as_it_was_written() -> None:
    assert "[red]x[/red]: " in plain(frame(seen(job("1", name="[red]x[/red]")), Gaze(), 150, NOW).lines)


def test_widths_count_columns_and_not_letters() -> None:
    assert width_of("界") == 2
