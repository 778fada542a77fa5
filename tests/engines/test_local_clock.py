"""The time in which all is reckoned, and that on the wall."""

import time
from pathlib import Path

import pytest

from muster.engines.local import clock
from muster.engines.local.clock import Clock
from muster.engines.local.processes import boot_id

YEAR = 365 * 86_400.0


def set_wall(monkeypatch: pytest.MonkeyPatch, ahead_seconds: float) -> None:
    real = time.time
    monkeypatch.setattr(clock.time, "time", lambda: real() + ahead_seconds)


def test_it_is_the_walls_until_somebody_sets_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Clock(str(tmp_path / "clock"))
    assert abs(mine.now() - time.time()) < 1
    assert abs(mine.wall_ahead_seconds()) < 1
    before = mine.now()
    set_wall(monkeypatch, -YEAR)
    assert before <= mine.now() < before + 1
    assert abs(mine.wall_ahead_seconds() + YEAR) < 1


def test_it_is_the_same_for_all_who_look_until_the_machine_is_rebooted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "clock"
    first = Clock(str(path))
    set_wall(monkeypatch, YEAR)
    assert abs(Clock(str(path)).now() - first.now()) < 1
    path.write_text(path.read_text().replace(boot_id(), "another-boot"))
    assert abs(Clock(str(path)).now() - first.now() - YEAR) < 1


def test_it_never_is_earlier_than_it_was(tmp_path: Path) -> None:
    path = str(tmp_path / "clock")
    late = time.time() + YEAR
    assert Clock(path, since=late).now() >= late
    assert Clock(path).now() >= late
    assert Clock(path, since=time.time()).now() >= late


@pytest.mark.parametrize("text", ["", "garbled", "a b c", "\xff\xfe", f"{boot_id()} soon"])
def test_a_file_that_says_nothing_is_written_anew(tmp_path: Path, text: str) -> None:
    path = tmp_path / "clock"
    path.write_text(text, encoding="latin-1")
    mine = Clock(str(path))
    assert abs(mine.now() - time.time()) < 1
    assert abs(Clock(str(path)).now() - mine.now()) < 1


def test_it_goes_where_nothing_can_be_written(tmp_path: Path) -> None:
    assert abs(Clock(str(tmp_path / "absent" / "clock")).now() - time.time()) < 1
