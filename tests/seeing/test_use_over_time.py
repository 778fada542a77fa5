"""Held and used over time: exact for what was held, unknown for what nobody measured."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.model.units import DAY, HOUR, WEEK
from muster.server.seeing.use_over_time import (
    MOST_POINTS,
    Grid,
    held_in_steps,
    lines_of,
    sentence_of,
    step_for,
)
from muster.store.seeing_reads import Piece, Span


def span(
    start: float, end: float | None, gpus: int = 1, team: str = "nlp", job: str = "1", owner: str = "ana"
) -> Span:
    return Span(job, 1, team, owner, start, end, gpus * 1000, 0)


def team_of(one: Span | Piece) -> str:
    return one.team


def test_a_week_is_drawn_in_hours_and_an_hour_in_minutes() -> None:
    assert (step_for(WEEK), step_for(HOUR), step_for(DAY)) == (3600, 60, 300)
    assert step_for(DAY, 7200.0) == 7200
    assert step_for(HOUR, least=HOUR) == 3600


@given(st.floats(1.0, 40 * 365 * DAY), st.none() | st.floats(1.0, DAY))
def test_there_are_never_more_points_than_can_be_drawn(seconds: float, asked: float | None) -> None:
    grid = Grid.over(1_700_000_123.0, 1_700_000_123.0 + seconds, step_for(seconds, asked))
    assert 1 <= grid.count <= MOST_POINTS + 1


def test_held_is_the_mean_over_a_step_also_over_the_one_that_is_under_way() -> None:
    total, lines, others = lines_of(
        Grid(0, 100, 250.0), [span(50.0, 220.0, 2), span(200.0, None, 1)], [], team_of, of_gpus=True
    )
    assert total.held == [1.0, 2.0, 1.8]
    assert (lines[0].group, lines[0].held, others) == ("nlp", total.held, None)


def test_used_is_scaled_to_what_was_held_and_unknown_where_nothing_was_measured() -> None:
    pieces = [Piece(("1", 1), "nlp", "ana", 0, 50_000, 20_000)]
    total, _, _ = lines_of(Grid(0, 100, 300.0), [span(0.0, 200.0)], pieces, team_of, of_gpus=True)
    assert (total.held, total.used, total.coverage) == ([1.0, 1.0, 0.0], [0.4, None, 0.0], [0.5, 0.0, None])


def test_those_who_held_least_are_summed_up_as_others() -> None:
    spans = [span(0.0, 100.0, gpus=n, team=f"t{n:02}") for n in range(1, 16)]
    total, lines, others = lines_of(Grid(0, 100, 100.0), spans, [], team_of, of_gpus=True)
    assert [line.group for line in lines] == [f"t{n:02}" for n in range(15, 3, -1)]
    assert others is not None
    assert (others.groups, others.held, total.held) == (3, [6.0], [120.0])


def test_the_sentence_says_the_mean_what_of_it_was_used_and_the_most() -> None:
    pieces = [Piece(("1", 1), "nlp", "ana", 0, 100_000, 50_000)]
    total, _, _ = lines_of(Grid(0, 100, 200.0), [span(0.0, 100.0)], pieces, team_of, of_gpus=True)
    assert sentence_of(total, 4.0, "gpu", 200.0) == (
        "On average 0.5 of 4 GPUs were held in these 3m 20s, and 50% of that was used; at most 1 were held."
    )


SPANS = st.lists(
    st.builds(span, st.floats(-50, 450), st.none() | st.floats(-50, 450), st.integers(1, 8)), max_size=20
)


@given(SPANS)
def test_what_was_held_is_as_adding_it_up_one_by_one(spans: list[Span]) -> None:
    edges = np.array([0.0, 100.0, 200.0, 300.0, 370.0])
    found = held_in_steps(edges, spans, of_gpus=True)
    for i, (first, last) in enumerate(pairwise(edges)):
        alone = (
            max(0.0, min(last, 370.0 if s.ended_at is None else s.ended_at) - max(first, s.placed_at))
            for s in spans
        )
        expected = sum(seconds * s.gpus_milli for seconds, s in zip(alone, spans, strict=True))
        assert found[i] == pytest.approx(expected, abs=1e-3)
