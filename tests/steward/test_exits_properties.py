"""Any exits and any reports: the board agrees with one who looks at everything, wherever it is cut."""

from exit_worlds import SMALL, Naive, Told, streams
from hypothesis import given
from hypothesis import strategies as st

from muster.steward.exits import Board, Exits, Met, compiled
from muster.steward.exits.terms import Condition, show

CHARTERS = st.lists(st.tuples(st.sampled_from(["won", "lost"]), SMALL), min_size=1, max_size=3)
Charters = list[tuple[str, Condition]]
END = 100.0


def sides(charter: Charters) -> Exits:
    won = tuple(show(condition) for verdict, condition in charter if verdict == "won")
    return compiled(won, tuple(show(condition) for verdict, condition in charter if verdict == "lost"))


def begun(charter: Charters) -> Board:
    board = Board()
    board.begin("s", sides(charter), 0.0, 0.0)
    return board


def play(board: Board, told: list[Told], until: float = END) -> tuple[float, Met] | None:
    """What ends it, and when, with time looked at whenever the board asks for it."""
    for one in [*told, None]:
        at = until if one is None else one.at
        while (due := board.next_due()) is not None and due <= at:
            if met := board.due(due):
                return due, met[0]
        if one is not None and (found := board.report("s", one.source, one.at, one.values, one.step)):
            return one.at, found
    return None


@given(CHARTERS, streams())
def test_the_board_agrees_with_one_who_looks_at_everything_each_time(
    charter: Charters, told: list[Told]
) -> None:
    naive = Naive(charter)
    expected = naive.play(told, END)
    found = play(begun(charter), told)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert (found[0], found[1].condition) == (expected[0], show(naive.exits[expected[1]][1]))


CUTS = st.tuples(st.integers(0, 12), st.sampled_from([0.0, 0.5, 3.0]))


def cut_at(told: list[Told], cut: tuple[int, float]) -> tuple[int, float]:
    """After so many reports, and some time more, but before the next."""
    number = min(cut[0], len(told))
    at = cut[1] + (told[number - 1].at if number else 0.0)
    return number, min(at, told[number].at) if number < len(told) else at


@given(CHARTERS, streams(), CUTS)
def test_a_server_that_comes_back_goes_on_as_if_it_had_never_gone(
    charter: Charters, told: list[Told], cut: tuple[int, float]
) -> None:
    whole, first, second = begun(charter), begun(charter), Board()
    expected = play(whole, told)
    number, at = cut_at(told, cut)
    if found := play(first, told[:number], at):
        assert found == expected
        return
    second.restore("s", sides(charter), first.state("s", at), at)
    assert play(second, told[number:]) == expected


@given(CHARTERS, streams(), CUTS, st.sampled_from([1.0, 50.0]))
def test_time_in_which_it_is_suspended_might_as_well_not_have_been(
    charter: Charters, told: list[Told], cut: tuple[int, float], seconds: float
) -> None:
    whole, paused = begun(charter), begun(charter)
    expected = play(whole, told)
    number, at = cut_at(told, cut)
    if found := play(paused, told[:number], at):
        assert found == expected
        return
    paused.pause("s", at)
    assert paused.due(at + seconds) == []
    paused.go_on("s", at + seconds)
    later = [one._replace(at=one.at + seconds) for one in told[number:]]
    found = play(paused, later, END + seconds)
    assert (found and (found[0] - seconds, found[1])) == expected


@given(st.permutations(range(3)), st.tuples(CHARTERS, CHARTERS, CHARTERS), streams("012"))
def test_the_order_of_subjects_does_not_matter(
    order: list[int], charters: tuple[Charters, ...], told: list[Told]
) -> None:
    def ends(numbers: list[int]) -> dict[str, Met]:
        board = Board()
        for number in numbers:
            board.begin(str(number), sides(charters[number]), 0.0, 0.0)
        found: list[Met | None] = []
        for one in told:
            found += board.due(one.at)
            found += [board.report(str(n), one.source, one.at, one.values, one.step) for n in numbers]
        return {met.subject: met for met in [*found, *board.due(END)] if met is not None}

    assert ends(list(order)) == ends(sorted(order))
