"""The one door: formats are found out, and whatever is wrong is told in a sentence."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.errors import BadInput, MusterError
from muster.traces.registry import FORMATS, read_trace

OPENB = ("name,cpu_milli,memory_mib,num_gpu,gpu_milli", "pod,1000,1024,1,460")
MURI = ("job_id,num_gpu,submit_time,iterations,model_name,iteration_time", "0,4,0,100,bert,190")
PHILLY = ("timestamp,duration,num_gpus,gpu_time,cluster", "2017-10-09 07:01:55,66.0,1,66.0,11cb48")
SACCT = (
    "JobID|Submit|ElapsedRaw|NNodes|ReqTRES",
    "1|2026-01-05T10:00:00|60|1|cpu=2,gres/gpu=1,mem=1G",
)
SWF = ("; MaxProcs: 100", "1 0 0 60 4 -1 -1 4 90 -1 1 1 1 -1 -1 -1 -1 -1")
EXAMPLES = {"openb": OPENB, "muri": MURI, "philly": PHILLY, "sacct": SACCT, "swf": SWF}


@pytest.mark.parametrize("name", list(FORMATS))
def test_a_format_is_found_out_by_its_header(write, name):
    path = write("some.txt", *EXAMPLES[name])
    assert read_trace(path) == read_trace(path, name)


def test_a_log_without_comments_is_found_out_by_its_numbers(write):
    assert len(read_trace(write("log.txt", SWF[1])).jobs) == 1


@pytest.mark.parametrize(
    ("file", "name"), [("a.b.csv", "a.b"), ("KTH-SP2.swf", "KTH-SP2"), ("jan.txt", "jan")]
)
def test_a_trace_is_called_by_its_file_without_the_ending(write, file, name):
    assert read_trace(write(file, *SWF)).name == name


@pytest.mark.parametrize("name", list(FORMATS))
def test_windows_line_ends_a_byte_order_mark_and_blank_lines_are_no_matter(write, name):
    lines = EXAMPLES[name]
    path = write("same.csv", *lines)
    plain = read_trace(path, name)
    marked = write("same.csv", "\ufeff" + lines[0], lines[1], "", "", end="\r\n")
    assert read_trace(marked, name) == plain


def test_quoted_cells_are_read_as_spreadsheets_write_them(write):
    path = write("quoted.csv", '"' + MURI[0].replace(",", '","') + '"', '"0",4,0,100,"a, b",190')
    assert read_trace(path).jobs[0].job.name == "a, b"


def test_an_unknown_file_lists_the_formats_that_are_known(write):
    with pytest.raises(BadInput, match=r"first line is 'hello'.*openb.*muri.*philly.*sacct.*swf"):
        read_trace(write("notes.txt", "hello"))


def test_an_unknown_format_lists_the_known_ones(write):
    with pytest.raises(BadInput, match="unknown trace format 'pbs'; known: openb, muri"):
        read_trace(write("log.swf", *SWF), "pbs")


def test_a_file_in_another_format_than_said_names_the_missing_columns(write):
    with pytest.raises(BadInput, match=r"line 1: expected the columns .* missing: job_id"):
        read_trace(write("pods.csv", *OPENB), "muri")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\r\n \r\n", "is empty"),
        (b"\x00\x01\x02", "is a binary file"),
        ("timestamp,duration".encode("utf-16"), "is a binary file"),
        (b"\x1f\x8bnot gzip", "is a broken gzip file"),
        (b'""\n', "is in no format that is known"),
    ],
)
def test_a_file_that_is_no_text_is_refused_in_a_sentence(tmp_path: Path, content, says):
    path = tmp_path / "trace.csv"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=says):
        read_trace(str(path))


def test_a_missing_file_and_a_folder_are_refused_in_a_sentence(tmp_path: Path):
    with pytest.raises(BadInput, match=r"can't read .*absent.csv: No such file"):
        read_trace(str(tmp_path / "absent.csv"))
    with pytest.raises(BadInput, match="can't read"):
        read_trace(str(tmp_path))
    with pytest.raises(BadInput, match="is not a path"):
        read_trace("a\0b")


def test_a_complaint_about_a_huge_cell_stays_short(write):
    path = write("huge.csv", PHILLY[0], PHILLY[1].replace("66.0,1", "x" * 100_000 + ",1"))
    with pytest.raises(BadInput) as refusal:
        read_trace(path)
    assert len(str(refusal.value)) < 600


CELLS = st.sampled_from(
    ["", "0", "-1", "1e400", "nan", "9" * 30, "x", '"', "1|2", "2026-01-05", "gres/gpu=3", "4Gc"]
) | st.text('0159.,|-+;:"\n\r eExG=/é\0', max_size=8)
UNSURPRISED = settings(max_examples=200, deadline=None, derandomize=True)


def read_or_be_refused(folder: Path, content: bytes, name: str | None) -> None:
    path = folder / "trace"
    path.write_bytes(content)
    with contextlib.suppress(MusterError):
        read_trace(str(path), name)


@given(content=st.binary(max_size=200), name=st.sampled_from([None, *FORMATS]))
@UNSURPRISED
def test_any_bytes_give_a_trace_or_a_sentence(tmp_path_factory, content, name):
    read_or_be_refused(tmp_path_factory.getbasetemp(), content, name)


@given(name=st.sampled_from(list(FORMATS)), place=st.integers(0, 17), cell=CELLS)
@UNSURPRISED
def test_any_cell_may_turn_bad_and_gives_a_trace_or_a_sentence(tmp_path_factory, name, place, cell):
    header, row = EXAMPLES[name]
    delimiter = {"sacct": "|", "swf": " "}.get(name, ",")
    cells = row.split(delimiter)
    cells[place % len(cells)] = cell
    content = f"{header}\n{delimiter.join(cells)}\n".encode()
    read_or_be_refused(tmp_path_factory.getbasetemp(), content, name)
