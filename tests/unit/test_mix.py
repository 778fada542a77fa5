"""The mix: which kinds of parts people ask for."""

from muster.model.job import Shape
from muster.model.mix import EMPTY, Mix, MixCounter

ONE, TWO, CPU = Shape(gpus=1), Shape(gpus=2), Shape(cpus_milli=1000)


def counted(*shapes: Shape) -> MixCounter:
    counter = MixCounter()
    for shape in shapes:
        counter.saw(shape)
    return counter


def test_nothing_seen_is_an_empty_mix() -> None:
    assert counted().view() is EMPTY


def test_the_most_common_come_first() -> None:
    mix = counted(*[ONE, TWO, TWO, CPU, TWO, ONE] * 20).view()
    assert [shape for shape, _ in mix.classes] == [TWO, ONE, CPU]
    assert mix.total == sum(count for _, count in mix.classes) <= 120


def test_the_view_stays_until_the_mix_has_grown_much() -> None:
    counter = counted(*[ONE] * 100)
    view = counter.view()
    counter.saw(TWO)
    assert counter.view() is view
    counter.saw(TWO, 100)
    assert counter.view().version > view.version


def test_the_view_follows_from_what_was_seen_not_from_when_somebody_looked() -> None:
    looked_at, left_alone = MixCounter(), MixCounter()
    for n in range(50):
        for counter in (looked_at, left_alone):
            counter.saw(TWO if n % 7 else ONE)
        looked_at.view()
    assert looked_at.view().classes == left_alone.view().classes


def test_kinds_are_merged_and_the_rare_left_out() -> None:
    mix = Mix(((ONE, 90), (TWO, 8), (CPU, 2)))
    assert mix.classes_by(lambda shape: shape.gpus, 0.9) == [(1, 0.9)]
    assert mix.classes_by(lambda shape: bool(shape.gpus), 0.95) == [(True, 0.98)]


def test_what_is_wanted_always_is_never_left_out() -> None:
    mix = Mix(((ONE, 98), (TWO, 2)))
    found = mix.classes_by(lambda shape: shape.gpus, 0.5, always=lambda gpus: gpus > 1)
    assert found == [(1, 0.98), (2, 0.02)]


def test_too_many_kinds_fade_and_the_common_stay() -> None:
    counter = MixCounter()
    counter.saw(ONE, 1000)
    for n in range(5000):
        counter.saw(Shape(cpus_milli=n + 1))
    mix = counter.view()
    assert mix.classes[0][0] == ONE
    assert len(mix.classes) < 5000
