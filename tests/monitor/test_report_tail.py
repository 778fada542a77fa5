"""Reading on in a log that grows, is cut, handed on, replaced; by one reader after the other."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.monitor.reports import tail as module
from muster.monitor.reports.lines import json_line
from muster.monitor.reports.tail import Tail

LIMIT = 1 << 28


def tail(path: Path, position: bytes = b"", log_bytes: int = LIMIT) -> Tail:
    return Tail("7", 1, str(path), json_line, log_bytes=log_bytes, position=position)


def said(source: Tail, *, last: bool = False) -> list[float]:
    found = []
    while True:
        found += [report.values["i"] for report in source.poll(5.0, last=last)]
        if not source.is_behind:
            return found


def put(path: Path, text: str | bytes) -> None:
    with path.open("ab") as log:
        log.write(text if isinstance(text, bytes) else text.encode())


def line(i: int) -> str:
    return f'{{"i": {i}}}\n'


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "7.1.log"


def test_a_log_that_comes_late_is_read_from_its_start(log: Path) -> None:
    source = tail(log)
    assert said(source) == []
    put(log, line(1))
    assert said(source) == [1]
    assert said(source) == []


def test_half_a_line_counts_when_it_is_whole_or_never_will_be(log: Path) -> None:
    source = tail(log)
    put(log, line(1) + '{"i": ')
    assert said(source) == [1]
    put(log, '2}\r{"i": 3}')
    assert said(source) == [2]
    assert said(source, last=True) == [3]
    assert said(source, last=True) == []


def test_another_reader_goes_on_where_the_first_stood(log: Path) -> None:
    first = tail(log)
    put(log, line(1) + '{"i"')
    assert said(first) == [1]
    second = tail(log, first.position)
    put(log, ": 2}\n")
    assert said(second) == [2]


def test_a_position_that_makes_no_sense_is_the_beginning(log: Path) -> None:
    put(log, line(1))
    for position in (b"\xff", b"nonsense", b"\x93\x01\x02\x03"):
        assert said(tail(log, position)) == [1]


def test_a_line_that_is_too_long_is_passed_over_whole(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_LINE", 100)
    source = tail(log)
    put(log, line(1) + '{"text": "' + "x" * 200)
    assert said(source) == [1]
    source = tail(log, source.position)
    put(log, '", "i": 2}\n' + line(3) + '{"text": "' + "x" * 200 + '", "i": 4}\n' + line(5))
    assert said(source) == [3, 5]


def test_no_more_is_read_at_once_than_is_good(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 50)
    monkeypatch.setattr(module, "_MOST_REPORTS", 2)
    source = tail(log)
    put(log, "".join(map(line, range(20))))
    assert len(source.poll(5.0)) == 2
    assert source.is_behind
    source = tail(log, source.position)
    assert said(source, last=True) == list(range(2, 20))


def test_a_log_that_its_owner_empties_is_read_from_its_start(log: Path) -> None:
    source = tail(log)
    put(log, line(1) + line(2))
    assert said(source) == [1, 2]
    os.truncate(log, 0)
    put(log, line(3))
    assert said(source) == [3]


def test_a_log_that_is_cut_back_to_its_limit_is_not_read_again(log: Path) -> None:
    source = tail(log, log_bytes=20)
    put(log, "".join(map(line, range(6))))
    assert said(source) == list(range(6))
    os.truncate(log, 20)
    put(log, "\nmuster: the log is full\n")
    assert said(source) == []
    put(log, line(7))
    assert said(source) == [7]


def test_another_file_of_the_same_name_is_read_from_its_start(log: Path) -> None:
    source = tail(log)
    put(log, line(1) + line(2))
    assert said(source) == [1, 2]
    log.rename(log.with_suffix(".old"))
    assert said(source) == []
    put(log, line(3) + line(4) + line(5))
    assert said(source) == [3, 4, 5]


def test_what_is_no_plain_file_is_no_log(log: Path) -> None:
    other = log.with_name("other")
    put(other, line(1))
    log.symlink_to(other)
    assert said(tail(log)) == []
    log.unlink()
    os.mkfifo(log)
    assert said(tail(log)) == []
    log.unlink()
    log.mkdir()
    assert said(tail(log)) == []


def test_an_empty_log_that_was_handed_on_is_another_jobs(log: Path) -> None:
    log.touch()
    source = tail(log)
    assert said(source) == []
    log.rename(log.with_name("8.1.log"))
    put(log.with_name("8.1.log"), line(1))
    assert said(source, last=True) == []


@given(
    st.lists(st.sampled_from(["{", '"i":', " 1", "}", "\n", "\r", "\r\n", '{"i": 2}\n', "é"]), max_size=40),
    st.data(),
)
def test_however_it_is_cut_up_the_same_is_read(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("log")
    whole, slowly = folder / "whole", folder / "slowly"
    text = "".join(pieces).encode()
    put(whole, text)
    found, position, at = list[float](), b"", 0
    while at < len(text):
        count = data.draw(st.integers(1, 9))
        put(slowly, text[at : at + count])
        at += count
        source = tail(slowly, position)
        found += said(source, last=at >= len(text))
        position = source.position
    assert found == said(tail(whole), last=True)
