"""Whatever is sent, the answer is a job or a sentence."""

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from wants import built

from muster.application.document import Document
from muster.application.options import known_options
from muster.application.sbatch import KNOWN
from muster.model.errors import BadInput

TEXT = st.text(max_size=60)
BITS = st.sampled_from(
    [
        "4",
        "8G",
        "1-3",
        "%2",
        "1e-3",
        "nan",
        "-1",
        "2h",
        "1-12:00:00",
        "lr=1,2",
        "A40",
        "gpu:a:2",
        "now+2h",
        "x > 1",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | BITS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from([*Document.__struct_encode_fields__, "nmae"])
LINES = st.builds(
    lambda dashes, name, mark, value: f"#SBATCH {dashes}{name}{mark}{value}",
    st.sampled_from(["--", "-", ""]),
    st.sampled_from([*sorted(KNOWN), "c", "N", "t"]) | TEXT,
    st.sampled_from(["=", " ", ""]),
    BITS | TEXT,
)


def answer(**given: Any) -> None:
    with contextlib.suppress(BadInput):
        list(built(**given).job.gang.parts)


@given(TEXT)
def test_any_text_as_yaml(text: str) -> None:
    answer(yaml=text)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_value_as_an_application(application: dict[str, object]) -> None:
    answer(application={"run": "true", **application})


@given(st.dictionaries(st.sampled_from(known_options()) | TEXT, VALUES, max_size=4))
def test_any_options(options: dict[str, object]) -> None:
    answer(options=options)


@given(st.lists(LINES | TEXT, max_size=4))
def test_any_script(lines: list[str]) -> None:
    answer(script="\n".join(lines))


@given(st.lists(st.text(), max_size=3), st.text(), st.dictionaries(st.text(), st.text(), max_size=2))
def test_any_command(command: list[str], cwd: str, environment: dict[str, str]) -> None:
    answer(command=tuple(command), cwd=cwd, environment=environment)
