"""The page and the terminal's table, made from hand-made replays."""

import re
from html.parser import HTMLParser

import pytest

from muster.cli.render import layout, one_line
from muster.simulate.measure import measure, rows
from muster.simulate.page import finding, page
from muster.simulate.records import JobRecord, Replay, Sample

VOID = {"meta", "path", "rect"}  # path and rect close themselves


class Elements(HTMLParser):
    """Collects the elements of a page, and refuses one that is not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.seen if name == tag]


def queue_of(jobs: int, run_seconds: float, policy: str = "fair", gpus: int = 1) -> Replay:
    """Jobs that come at once and run one after the other, on GPUs or, without any, on a cpu."""
    records, samples = [], []
    for i in range(jobs):
        start = i * run_seconds
        job = JobRecord(f"{i}", f"job{i}", "ana", "vision", gpus * 1000, 1000, 0.0, run_seconds)
        job.started_at, job.ended_at = start, start + run_seconds
        records.append(job)
        samples.append(Sample(start, gpus * 1000, 1000, 1, jobs - i - 1, None))
    samples.append(Sample(jobs * run_seconds, 0, 0, 0, 0, None))
    return Replay("night shift", policy, gpus * 1000, 1000, 1, records, samples)


@pytest.fixture(scope="module")
def compared() -> str:
    return page([queue_of(5, 3600, "slow"), queue_of(5, 1800, "quick")])


def test_the_page_is_well_formed_and_has_no_script(compared: str) -> None:
    assert Elements(compared).named("script") == []


def test_the_page_refers_to_nothing_outside_itself(compared: str) -> None:
    assert not re.search(r"https?:|//\w|@import|url\((?!#)|\bsrc=|\bhref=", compared)


def test_each_picture_has_a_title_a_description_and_a_table(compared: str) -> None:
    elements = Elements(compared)
    drawings = [svg for svg in elements.named("svg") if svg.get("role") == "group"]
    assert len(drawings) == len(elements.named("details")) == len(elements.named("desc")) == 4
    ids = {e.get("id") for _, e in elements.seen}
    assert all(set((svg["aria-labelledby"] or "").split()) <= ids for svg in drawings)


def test_policies_differ_in_dash_and_pattern_and_not_by_colour_alone(compared: str) -> None:
    elements = Elements(compared)
    lines = [p for p in elements.named("path") if p.get("class") == "line"]
    looks = {(p["stroke"], p["stroke-dasharray"]) for p in lines}
    assert looks == {("var(--c0)", "none"), ("var(--c1)", "7 3")}
    assert len(elements.named("pattern")) == 2


def test_names_are_escaped_wherever_they_appear() -> None:
    hostile = queue_of(2, 60, policy="<script>alert(1)</script>")
    hostile.trace = '"><img onerror=x>'
    text = page([hostile])
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text


def test_the_page_opens_with_who_is_quicker_and_by_how_much(compared: str) -> None:
    said = "Under quick the mean job completes in 1h 30m, 50.0&nbsp;% sooner than under slow."
    assert f'<p class="finding">{said}</p>' in compared


def test_a_finding_about_one_policy_compares_it_with_nothing() -> None:
    said = finding([measure(queue_of(1, 60))])
    assert said == "Under fair the mean job completes in 1m."


def test_a_finding_about_unfinished_work_speaks_of_counts() -> None:
    partly = queue_of(3, 60)
    partly.records[2].ended_at = None
    assert finding([measure(partly)]) == "fair finished 2 of 3 jobs."


def test_a_finding_about_nothing_finished_speaks_of_what_was_held() -> None:
    never = queue_of(1, 60)
    never.records[0].ended_at = None
    assert finding([measure(never)]) == "No job finished; at its peak fair held 100.0 % of the cluster."


def test_cpus_are_drawn_where_there_are_no_gpus() -> None:
    text = page([queue_of(2, 60, gpus=0)])
    assert "cpus held over time" in text
    assert "GPU" not in text


def test_an_empty_replay_still_makes_a_page() -> None:
    text = page([Replay("nothing", "fair", 1000, 1000, 1, [], [])])
    assert text.count("Nothing happened that could be drawn.") == 4
    Elements(text)


def test_times_are_marked_in_the_unit_that_people_would_use() -> None:
    assert "time since the first submission (days)" in page([queue_of(30, 86_400)])
    assert "time since the first submission (minutes)" in page([queue_of(3, 600)])


def test_columns_of_the_table_are_aligned_and_the_best_carry_a_mark() -> None:
    reports = [measure(queue_of(5, 3600, "slow")), measure(queue_of(5, 1800, "quick"))]
    lines = ["".join(text for text, _ in line) for line in layout(["slow", "quick"], rows(reports))]
    mean = lines[lines.index("Wait") + 1]
    assert mean.split() == ["mean", "2h", "1h", "*"]
    assert len({len(line) for line in lines if line.startswith("  ")}) == 1
    assert lines[-1] == "* best of its row"


def test_one_policy_has_no_best() -> None:
    lines = layout(["fair"], rows([measure(queue_of(2, 60))]))
    assert not any("*" in text for line in lines for text, _ in line)


def test_control_characters_never_reach_a_terminal() -> None:
    assert one_line("a\x1b[31mb\nc\u202e") == "a\N{REPLACEMENT CHARACTER}[31mb c\N{REPLACEMENT CHARACTER}"
