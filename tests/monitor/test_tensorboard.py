"""TensorBoard's event files, as real writers write them; and whatever else may lie in their place."""

import math
import os
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.monitor.reports import tensorboard
from muster.monitor.reports.crc32c import crc32c, masked
from muster.monitor.reports.report import Report, Source
from muster.monitor.reports.tensorboard import TensorBoard
from muster.monitor.reports.tfevents import Corrupt, Malformed, data_of, frame_at, scalars

tensorboardX = pytest.importorskip("tensorboardX", reason="tensorboardX is in the extra 'trackers'")  # noqa: N816
from tensorboardX.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2  # noqa: E402

NAME = "events.out.tfevents.1.here"
NOBODY = 65534
_WRITTEN_WITHIN_SECONDS = 20.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def _source(folder: Path, position: bytes = b"", since: float = 0.0) -> TensorBoard:
    return TensorBoard("12", 1, str(folder), position, uid=os.getuid(), since=since)


def _values(source: Source) -> list[tuple[float | None, dict[str, float]]]:
    return [(report.step, report.values) for report in source.poll(time.time())]


def _writer(folder: Path) -> Any:
    return tensorboardX.SummaryWriter(str(folder), flush_secs=0.01)


def _next_values(source: Source, count: int) -> list[tuple[float | None, dict[str, float]]]:
    """A writer has a thread that writes when it likes."""
    found, until = _values(source), time.monotonic() + _WRITTEN_WITHIN_SECONDS
    while sum(len(values) for _, values in found) < count and time.monotonic() < until:
        time.sleep(0.01)
        found += _values(source)
    return found


def _event(*values: Any, step: int = 1, wall: float | None = None) -> bytes:
    """As protobuf's own library writes it."""
    summary = summary_pb2.Summary(value=values)
    at = time.time() if wall is None else wall
    data: bytes = event_pb2.Event(wall_time=at, step=step, summary=summary).SerializeToString()
    return data


def _simple(tag: str, value: float) -> Any:
    return summary_pb2.Summary.Value(tag=tag, simple_value=value)


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked(length)) + data + struct.pack("<I", masked(data))


def _written(folder: Path, *records: bytes, name: str = NAME) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"".join(records))
    return folder / name


# --- Real writers ---------------------------------------------------------------------------------


def test_what_a_writer_writes_is_reported_while_it_goes_on(folder: Path) -> None:
    source = _source(folder)
    assert _values(source) == []
    with _writer(folder) as writer:
        writer.add_scalar("val/acc", 0.5, 10)
        assert _next_values(source, 1) == [(10, {"val/acc": 0.5})]
        writer.add_scalar("val/acc", math.nan, 20)
        [(step, values)] = _next_values(source, 1)
        assert step == 20
        assert math.isnan(values["val/acc"])
    assert _values(source) == []
    assert source.trouble is None


def test_the_values_of_a_step_are_one_report(folder: Path) -> None:
    with _writer(folder) as writer:
        for step in (10, 20):
            writer.add_scalar("val/acc", 0.5, step)
            writer.add_scalar("val/loss", 2.0, step)
    assert _values(_source(folder)) == [(step, {"val/acc": 0.5, "val/loss": 2.0}) for step in (10, 20)]


def test_what_is_no_scalar_is_passed_over(folder: Path) -> None:
    with _writer(folder) as writer:
        writer.add_histogram("weights", [float(i) for i in range(100)], 1)
        writer.add_text("note", "a text", 1)
        writer.add_hparams({"lr": 0.1}, {}, name="tried", global_step=1)
        writer.add_scalar("acc", 0.5, 1)
    assert _values(_source(folder)) == [(1, {"acc": 0.5})]


def test_a_report_says_whose_it_is_and_when_it_was_written(folder: Path) -> None:
    before = time.time()
    with _writer(folder) as writer:
        writer.add_scalar("acc", 0.5, 3)
    now = time.time()
    [report] = _source(folder).poll(now)
    assert report == Report("12", 1, report.at, 3.0, {"acc": 0.5}, "tensorboard")
    assert before - 0.1 <= report.at <= now


def test_time_is_told_by_the_clock_that_nobody_sets(folder: Path) -> None:
    """Ours is a day behind the wall's, which somebody has set."""
    _written(folder, _record(_event(_simple("acc", 0.5))))
    [report] = _source(folder).poll(time.time() - 86400)
    assert abs(report.at - (time.time() - 86400)) < 60


def test_runs_with_the_same_tags_are_told_apart_by_their_folder(folder: Path) -> None:
    with _writer(folder / "train") as train, _writer(folder / "validation") as validation:
        train.add_scalar("epoch_loss", 1.0, 1, walltime=time.time())
        validation.add_scalar("epoch_loss", 2.0, 1, walltime=time.time())
        validation.add_scalar("val_acc", 0.5, 1, walltime=time.time())
    assert _values(_source(folder)) == [
        (1, {"epoch_loss": 1.0, "validation/epoch_loss": 2.0, "val_acc": 0.5})
    ]


def test_who_began_with_a_name_keeps_it_after_a_restart(folder: Path) -> None:
    _written(folder / "b", _record(_event(_simple("loss", 1.0))))
    source = _source(folder)
    source.poll(time.time())
    _written(folder / "a", _record(_event(_simple("loss", 2.0))))
    assert _values(_source(folder, source.position)) == [(1, {"a/loss": 2.0})]


def test_a_writer_without_steps_makes_a_report_of_each_value(folder: Path) -> None:
    with _writer(folder) as writer:
        for value in (1.0, 0.5, 0.25):
            writer.add_scalar("loss", value)
    assert [values["loss"] for _, values in _values(_source(folder))] == [1.0, 0.5, 0.25]


def test_more_names_than_a_report_has_go_into_several_of_the_same_step(folder: Path) -> None:
    _written(folder, _record(_event(*(_simple(f"w{i}", i) for i in range(150)), step=4)))
    found = _values(_source(folder))
    assert {step for step, _ in found} == {4}
    assert sum(len(values) for _, values in found) == 150


# --- What a tensor may be -------------------------------------------------------------------------

ONE = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=1)])
TWO = tensor_shape_pb2.TensorShapeProto(dim=[tensor_shape_pb2.TensorShapeProto.Dim(size=2)])
TENSORS = [
    ("a float", {"dtype": "DT_FLOAT", "float_val": [0.5]}, 0.5),
    ("a double", {"dtype": "DT_DOUBLE", "double_val": [0.1]}, 0.1),
    ("an int", {"dtype": "DT_INT32", "int_val": [-3]}, -3.0),
    ("a long int", {"dtype": "DT_INT64", "int64_val": [-(1 << 40)]}, -float(1 << 40)),
    ("a half", {"dtype": "DT_HALF", "half_val": [0x3800]}, 0.5),
    ("a bfloat16", {"dtype": "DT_BFLOAT16", "half_val": [0x3F00]}, 0.5),
    ("bytes of a float", {"dtype": "DT_FLOAT", "tensor_content": struct.pack("<f", 0.5)}, 0.5),
    ("bytes of a half", {"dtype": "DT_HALF", "tensor_content": struct.pack("<e", 0.5)}, 0.5),
    ("bytes of a bfloat16", {"dtype": "DT_BFLOAT16", "tensor_content": b"\x00\x3f"}, 0.5),
    ("bytes of a long int", {"dtype": "DT_INT64", "tensor_content": struct.pack("<q", -7)}, -7.0),
    ("a vector of one", {"dtype": "DT_FLOAT", "float_val": [0.5], "tensor_shape": ONE}, 0.5),
    ("nothing, which is zero", {"dtype": "DT_FLOAT"}, 0.0),
    ("a vector of two", {"dtype": "DT_FLOAT", "float_val": [0.5, 1.0], "tensor_shape": TWO}, None),
    ("more than its shape", {"dtype": "DT_FLOAT", "float_val": [0.5, 1.0]}, None),
    ("bytes of another length", {"dtype": "DT_FLOAT", "tensor_content": b"abc"}, None),
    ("a text", {"dtype": "DT_STRING", "string_val": [b"0.5"]}, None),
]


@pytest.mark.parametrize(
    ("tensor", "value"), [case[1:] for case in TENSORS], ids=[case[0] for case in TENSORS]
)
def test_a_tensor_with_one_number_is_a_scalar(tensor: dict[str, Any], value: float | None) -> None:
    said = summary_pb2.Summary.Value(tag="x", tensor=tensor_pb2.TensorProto(**tensor))
    found = [scalar.value for scalar in scalars(_event(said))]
    assert found == ([] if value is None else [value])


def test_a_step_below_zero_is_one(folder: Path) -> None:
    assert scalars(_event(_simple("x", 1.0), step=-5))[0].step == -5


# --- Files that are written, broken, or of others -------------------------------------------------


def test_half_a_record_is_waited_for(folder: Path) -> None:
    records = [_record(_event(_simple("loss", float(i)), step=i)) for i in range(3)]
    whole = b"".join(records)
    source, found = _source(folder), []
    for end in range(0, len(whole) + 1, 7):
        _written(folder, whole[:end])
        found += _values(source)
    _written(folder, whole)
    assert [*found, *_values(source)] == [(float(i), {"loss": float(i)}) for i in range(3)]
    assert source.trouble is None


def test_a_file_with_a_broken_record_is_left_and_that_is_said_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    good, broken = _record(_event(_simple("loss", 1.0))), bytearray(_record(_event(_simple("loss", 2.0))))
    broken[20] ^= 1
    _written(folder, good, bytes(broken), good)
    _written(folder, good, name=NAME + ".other")
    source = _source(folder)
    assert len(_values(source)) == 2
    again = _source(folder, source.position)
    assert _values(source) == _values(again) == []
    assert [NAME in record.getMessage() for record in caplog.records] == [True]
    assert "checksum" in (source.trouble or "")


def test_a_whole_record_that_is_no_event_does_not_hide_the_next(folder: Path) -> None:
    _written(folder, _record(b"\x0f no event"), _record(_event(_simple("loss", 1.0))))
    source = _source(folder)
    assert _values(source) == [(1, {"loss": 1.0})]
    assert "no event" in (source.trouble or "")


def test_a_record_longer_than_any_with_numbers_is_stepped_over(folder: Path) -> None:
    _written(folder, _record(bytes(3 << 20)), _record(_event(_simple("loss", 1.0))))
    assert _values(_source(folder)) == [(1, {"loss": 1.0})]


def test_a_length_beyond_all_files_is_waited_for_and_takes_nothing(folder: Path) -> None:
    length = struct.pack("<Q", (1 << 64) - 1)
    _written(folder, length + struct.pack("<I", masked(length)) + b"the rest never comes")
    assert _values(_source(folder)) == []


def test_after_a_restart_nothing_comes_twice_and_nothing_is_missed(folder: Path) -> None:
    first, second = (_record(_event(_simple("loss", float(i)), step=i)) for i in range(2))
    _written(folder, first, second[:9])
    source = _source(folder)
    assert _values(source) == [(0, {"loss": 0.0})]
    _written(folder, first, second)
    assert _values(_source(folder, source.position)) == [(1, {"loss": 1.0})]


@pytest.mark.parametrize("position", [b"x", b"\xff" * 100, b"\x81\xa5files\x01", bytes(range(200, 250))])
def test_a_position_that_nobody_understands_is_the_beginning(folder: Path, position: bytes) -> None:
    _written(folder, _record(_event(_simple("loss", 1.0))))
    assert len(_values(_source(folder, position))) == 1


def test_what_an_earlier_attempt_wrote_is_not_reported_again(folder: Path) -> None:
    now = time.time()
    old, new = _event(_simple("acc", 0.99), wall=now - 60), _event(_simple("acc", 0.1), wall=now)
    _written(folder, _record(old), _record(new))
    os.utime(_written(folder, _record(_event(_simple("acc", 1.0), wall=now)), name=NAME + ".old"), (0, 0))
    assert _values(_source(folder, since=now - 30)) == [(1, {"acc": pytest.approx(0.1)})]


def test_a_poll_is_bounded_and_all_files_have_their_turn(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorboard, "_POLL_BYTES", 1)
    for name in "abc":
        _written(folder, _record(_event(_simple(name, 1.0))), name=NAME + name)
    source, found = _source(folder), list[str]()
    for _ in range(3):
        found += [name for _, values in _values(source) for name in values]
        assert source.is_behind
    assert found == ["a", "b", "c"]
    assert _values(source) == []
    assert not source.is_behind


def test_there_are_no_more_files_than_can_be_remembered(folder: Path) -> None:
    for i in range(70):
        _written(folder / f"run{i}", _record(_event(_simple("x", 1.0))))
    source = _source(folder)
    assert sum(len(values) for _, values in _values(source)) == 64
    assert "more than 64" in (source.trouble or "")
    assert len(source.position) < 3000


def test_links_pipes_and_devices_are_not_opened(folder: Path, tmp_path: Path) -> None:
    outside = _written(tmp_path / "outside", _record(_event(_simple("secret", 1.0))))
    folder.mkdir()
    (folder / NAME).symlink_to(outside)
    (folder / "linked").symlink_to(outside.parent)
    os.mkfifo(folder / (NAME + ".pipe"))
    if os.getuid() == 0:
        with suppress(OSError):
            os.mknod(folder / (NAME + ".device"), 0o20600, os.makedev(1, 5))  # zeros without end
    assert _values(_source(folder)) == []


def test_a_folder_that_is_a_link_itself_is_where_it_leads(folder: Path, tmp_path: Path) -> None:
    _written(tmp_path / "elsewhere", _record(_event(_simple("x", 1.0))))
    folder.symlink_to(tmp_path / "elsewhere")
    assert len(_values(_source(folder))) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_files_of_somebody_else_are_not_read(folder: Path) -> None:
    theirs = _written(folder, _record(_event(_simple("secret", 1.0))))
    os.link(theirs, folder / (NAME + ".linked"))
    os.chown(theirs, NOBODY, NOBODY)
    source = _source(folder)
    assert _values(source) == []
    assert "does not belong" in (source.trouble or "")


def test_no_folder_is_said_until_it_is_there(folder: Path) -> None:
    source = _source(folder)
    assert _values(source) == []
    assert "no folder" in (source.trouble or "")
    _written(folder, _record(_event(_simple("x", 1.0))))
    assert len(_values(source)) == 1
    assert source.trouble is None


def test_nothing_stays_open(folder: Path) -> None:
    for i in range(5):
        _written(folder / f"run{i}", _record(_event(_simple("x", 1.0))), b"half")
    source, before = _source(folder), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        source.poll(time.time())
    assert len(os.listdir("/proc/self/fd")) == before


# --- Whatever bytes there are ---------------------------------------------------------------------


def _plain(data: bytes) -> int:
    """By the definition, bit by bit."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def test_the_checksum_is_that_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA


@given(st.integers(0, 2100), st.integers(0, 1 << 32))
def test_the_checksum_is_the_same_however_long_the_data(length: int, seed: int) -> None:
    data = (seed.to_bytes(5, "little") * (length // 5 + 1))[:length]
    assert crc32c(data) == _plain(data)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_event_or_malformed(data: bytes) -> None:
    with suppress(Malformed):
        assert all(isinstance(scalar.value, float) and scalar.tag for scalar in scalars(data))


@st.composite
def _mutated(draw: st.DrawFn) -> bytes:
    """Real events, with a few bytes changed: further into the format than luck comes."""
    tensor = tensor_pb2.TensorProto(dtype="DT_FLOAT", float_val=[0.5], tensor_shape=ONE)
    values = [_simple("a", 1.0), summary_pb2.Summary.Value(tag="b", tensor=tensor)]
    data = bytearray(_event(*values, wall=1.0))
    for _ in range(draw(st.integers(1, 4))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


@given(_mutated())
def test_a_changed_event_is_an_event_or_malformed(data: bytes) -> None:
    with suppress(Malformed):
        assert all(isinstance(scalar.value, float) and scalar.tag for scalar in scalars(data))


@given(st.binary(max_size=100), st.integers(0, 20))
def test_any_bytes_are_a_record_or_corrupt_or_not_there_yet(piece: bytes, at: int) -> None:
    with suppress(Corrupt):
        frame = frame_at(piece, at)
        if frame is not None and frame.end <= len(piece):
            data_of(piece, frame)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return tmp_path_factory.mktemp("any")


@given(
    st.lists(st.one_of(st.binary(max_size=60), st.binary(max_size=60).map(_record), _mutated().map(_record)))
)
def test_any_file_is_read_without_a_fuss(place: Path, pieces: list[bytes]) -> None:
    _written(place, *pieces)
    source = _source(place)
    for report in source.poll(time.time()):
        assert report.values
        assert report.step is not None
    assert source.poll(time.time(), last=True) == []
