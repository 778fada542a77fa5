"""Sites to try things on: Delta's part with A40s, one of any size, and layouts that hypothesis makes up."""

from pathlib import Path

from hypothesis import strategies as st

import muster.demo
from muster.demo.sites import stress_text
from muster.layout.file import File, parse_layout
from muster.model.errors import BadInput

DELTA = Path(muster.demo.__file__).parent / "delta.yaml"


def one_sentence(error: BadInput) -> str:
    """What a person reads of it."""
    said = str(error)
    assert said
    assert said.isprintable()
    assert len(said) < 500
    return said


def delta() -> File:
    return parse_layout(DELTA.read_text(), "delta.yaml")


def stress(nodes: int = 2500, gpus: int = 4) -> File:
    return parse_layout(stress_text(nodes, gpus), "stress.yaml")


# --- Layouts that could be ------------------------------------------------------------------------------

_names = st.from_regex(r"[a-cé][a-c .~-]?", fullmatch=True).map(str.strip)
_ranges = st.tuples(st.integers(0, 30), st.integers(0, 12), st.booleans()).map(
    lambda t: f"[{t[0]:0{2 if t[2] else 1}}-{t[0] + t[1]:0{2 if t[2] else 1}}]"
)
_folded = st.one_of(_names, st.tuples(_names, _ranges).map("".join))
_some = st.integers(1, 20)


def _tables(**keys: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    needed = {
        key: value for key, value in keys.items() if key in ("name", "nodes", "count", "type", "members")
    }
    return st.fixed_dictionaries(needed, optional={k: v for k, v in keys.items() if k not in needed})


_kind = st.sampled_from(["k", "l"])
_gpus = _tables(count=st.integers(0, 17), model=_names, mem=st.sampled_from(["48G", "80G"]))
_one_kind = _tables(u=st.integers(1, 6), across=st.integers(1, 5), cores=_some, gpus=_gpus)
_rack = st.sampled_from(["R1", "R2", "R[1-3]", "S[08-10]"])
racks = st.lists(_tables(name=_rack, room=_names, row=_names, units=st.integers(1, 50)), max_size=3)
_place = _tables(nodes=_folded, kind=_kind, racks=_rack)
_exact = st.fixed_dictionaries(
    {"nodes": _folded, "kind": _kind, "racks": _rack}, optional={"per_rack": _some, "from_u": _some}
)
groups = st.lists(
    _tables(
        type=st.just("switch"), name=_names, members=st.one_of(_folded, _names.map("@{}".format)), up=_names
    ),
    max_size=2,
)
documents = st.fixed_dictionaries(
    {
        "muster_layout": st.just(1),
        "kinds": st.fixed_dictionaries({"k": _one_kind}, optional={"l": _one_kind}),
        "place": st.lists(_place | _exact, min_size=1, max_size=4),
    },
    optional={"site": _names, "racks": racks, "groups": groups},
)
