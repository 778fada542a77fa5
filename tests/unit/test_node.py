"""A node that is found again: what was drained stays so, what was exchanged does not."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from muster.model.node import Device, Health, Node, found_again

FOUND = Node("a", 8000, 1 << 30, devices=(Device("A40"), Device("A40"), Device("T4")))


def left(health: Health = Health.UP, *drained: int) -> Node:
    node = replace(FOUND, health=health, because="" if health is Health.UP else "fan")
    for g in drained:
        node = node.with_device(g, replace(node.devices[g], healthy=False, because="faults"))
    return node


def test_a_drained_node_and_a_drained_device_are_found_as_they_were_left() -> None:
    for known in (left(), left(Health.DRAINED), left(Health.UP, 1), left(Health.DRAINED, 0, 2)):
        assert found_again(FOUND, known) == known


def test_other_changes_of_the_node_are_taken_and_it_stays_drained() -> None:
    larger = replace(FOUND, memory_bytes=2 << 30, labels=frozenset({"ib"}))
    assert found_again(larger, left(Health.DRAINED, 1)) == replace(
        left(Health.DRAINED, 1), memory_bytes=2 << 30, labels=frozenset({"ib"})
    )


def test_a_device_of_another_model_was_exchanged_and_is_as_found() -> None:
    exchanged = FOUND.with_device(1, Device("H100"))
    assert found_again(exchanged, left(Health.UP, 1, 2)).devices == (
        Device("A40"),
        Device("H100"),
        Device("T4", healthy=False, because="faults"),
    )


def test_devices_that_are_new_are_as_found_and_those_that_are_gone_are_gone() -> None:
    more = replace(FOUND, devices=(*FOUND.devices, Device("T4")))
    assert found_again(more, left(Health.UP, 0)).devices == (*left(Health.UP, 0).devices, Device("T4"))
    assert found_again(replace(FOUND, devices=()), left(Health.UP, 0)).devices == ()


def test_whether_a_node_is_down_who_looks_knows() -> None:
    assert found_again(FOUND, left(Health.DOWN)) == FOUND
    assert found_again(replace(FOUND, health=Health.DOWN), left()).health is Health.DOWN


@given(seed=st.integers(0, 10_000))
def test_looking_twice_tells_no_more_than_once_and_never_mends(seed: int) -> None:
    luck = Random(seed)

    def some() -> Node:
        devices = tuple(
            Device(luck.choice("AB"), healthy=luck.random() < 0.5) for _ in range(luck.randint(0, 4))
        )
        return replace(FOUND, devices=devices, health=luck.choice([Health.UP, Health.DRAINED]))

    found, known = some(), some()
    once = found_again(found, known)
    assert found_again(found, once) == once
    assert known.health is Health.UP or once.health is Health.DRAINED
    for before, after in zip(known.devices, once.devices, strict=False):
        assert before.healthy or before.model != after.model or not after.healthy
