"""The line of every table, key and item of a TOML text."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.server.toml_lines import Lines, Path

TEXT = '''# a comment with key = 1
top = 1

[server]  # not [this]
name = "looks = like a key"
"quoted key" = 'and [a header]'

[ team . "a.b" ]
users = [
    "ada",  # , "nobody"
    "ben", "cy",
    ["nested",
     "deeper"],
]
quota = { gpus = 4, cpus = { whole = 1 }, "memory" = "1G" }
story = """
[team.fake]
key = "x" \\""" still inside
""""
raw = \'\'\'
quota = 1
\'\'\'
last.but.one = 2024-01-01 10:00:00.5
after = -1.5e3 # done

[[many]]
x = 1
[[many]]
y = 2
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("top",), 2),
        (("server",), 4),
        (("server", "name"), 5),
        (("server", "quoted key"), 6),
        (("team",), 8),
        (("team", "a.b"), 8),
        (("team", "a.b", "users"), 9),
        (("team", "a.b", "users", 0), 10),
        (("team", "a.b", "users", 2), 11),
        (("team", "a.b", "users", 3), 12),
        (("team", "a.b", "users", 3, 1), 13),
        (("team", "a.b", "quota"), 15),
        (("team", "a.b", "quota", "cpus", "whole"), 15),
        (("team", "a.b", "quota", "memory"), 15),
        (("team", "a.b", "story"), 16),
        (("team", "a.b", "raw"), 20),
        (("team", "a.b", "last", "but", "one"), 23),
        (("team", "a.b", "after"), 24),
        (("many",), 28),
        (("many", "x"), 27),
        (("many", "y"), 29),
    ],
)
def test_a_key_is_found_on_its_line(path: Path, line: int) -> None:
    assert tomllib.loads(TEXT)
    assert Lines(TEXT).of(path) == line


def test_what_only_looks_like_a_key_is_none() -> None:
    lines = Lines(TEXT)
    assert lines.of(("team", "fake")) == lines.of(("team",))
    assert lines.of(("key",)) == 1


def test_what_is_not_written_stands_where_the_thing_around_it_does() -> None:
    assert Lines("\n[a]\nb = 1\n").of(("a", "c", "d")) == 2
    assert Lines("").of(("a",)) == 1


def test_lines_that_end_as_on_windows_count_the_same() -> None:
    assert Lines("a = 1\r\n\r\nb = '''\r\n'''\r\nc = 3\r\n").of(("c",)) == 5


def test_only_newlines_end_lines() -> None:
    assert Lines("a = 'x\u2028y\x85z'\nb = 1\n").of(("b",)) == 2


WORDS = st.sampled_from(["a", "b-c", "1", "a.b", "x = y", "[t]", "#", "'", '"', "{", "é", ""])
SCALARS = st.sampled_from(
    ["1", "-2.5", "true", "1979-05-27 07:32:00", '"#"', "'\"'", '"""\n]\n"""', "'''=\n'''"]
)


def _key(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return word if word.isascii() and word.replace("-", "").isalnum() else f'"{escaped}"'


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[\n" + ", # ]\n".join(items) + "\n]"),
        st.dictionaries(WORDS, inner, max_size=3).map(
            lambda pairs: "{ " + ", ".join(f"{_key(k)} = {v}" for k, v in pairs.items()) + " }"
        ),
    ),
    max_leaves=8,
)


@given(st.dictionaries(WORDS, st.dictionaries(WORDS, VALUES, max_size=4), max_size=4))
def test_every_key_of_any_document_is_found_where_it_was_written(tables: dict[str, dict[str, str]]) -> None:
    written: list[str] = []
    expected: dict[Path, int] = {}
    for table, pairs in tables.items():
        written.append(f"[ {_key(table)} ] # [no.table]")
        expected[(table,)] = len(written)
        for key, value in pairs.items():
            expected[table, key] = len(written) + 1
            written += f"{_key(key)} = {value}".split("\n")
    text = "\n".join(written)
    tomllib.loads(text)
    lines = Lines(text)
    assert {path: lines.of(path) for path in expected} == expected
