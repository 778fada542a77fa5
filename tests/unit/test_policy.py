"""Policies: presets by name, knobs by name, and a sentence for what does not fit."""

import pytest

from muster.model.errors import BadInput, UnknownChoice
from muster.model.policy import PRESETS, Policy, preset, tuned


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_knows_its_name(name: str) -> None:
    assert preset(name).name == name


def test_the_default_is_fair() -> None:
    assert preset("fair") == Policy()


def test_an_unknown_preset_names_those_there_are() -> None:
    with pytest.raises(UnknownChoice, match=r"unknown policy 'nice'; known: .*fair.*fifo"):
        preset("nice")


@pytest.mark.parametrize(
    ("knob", "text", "value"),
    [
        ("place", "fgd", "fgd"),
        ("reservations", "4", 4),
        ("protected-seconds", "90", 90.0),
        ("compact", "false", False),
        ("charges", "0.1,1,4", (0.1, 1.0, 4.0)),
        ("levels_gpu_seconds", "60,600,6000", (60.0, 600.0, 6000.0)),
    ],
)
def test_a_knob_is_set_from_text(knob: str, text: str, value: object) -> None:
    assert getattr(tuned(Policy(), {knob: text}), knob.replace("-", "_")) == value


def test_knobs_that_are_not_set_stay() -> None:
    assert tuned(preset("easy"), {"seed": "7"}).backfill == "easy"
    assert tuned(preset("easy"), {}) == preset("easy")


def test_an_unknown_knob_names_those_there_are() -> None:
    with pytest.raises(UnknownChoice, match=r"unknown knob 'speed'; known: .*backfill"):
        tuned(Policy(), {"speed": "11"})


@pytest.mark.parametrize(
    ("knob", "text"),
    [
        ("place", "everywhere"),
        ("reservations", "many"),
        ("reservations", "1.5"),
        ("reservations", "-1"),
        ("patience", "nan"),
        ("patience", "inf"),
        ("compact", "perhaps"),
        ("charges", "1,2"),
        ("charges", "one,two,three"),
    ],
)
def test_what_does_not_fit_is_refused(knob: str, text: str) -> None:
    with pytest.raises(BadInput, match=knob):
        tuned(Policy(), {knob: text})


@pytest.mark.parametrize(
    ("knob", "text"),
    [("half-life-seconds", "0"), ("charges", "-1,1,1"), ("levels-gpu-seconds", "-60")],
)
def test_what_can_not_be_reckoned_with_is_refused(knob: str, text: str) -> None:
    with pytest.raises(BadInput):
        tuned(Policy(), {knob: text})
