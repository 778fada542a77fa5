"""What pages load: small, and what is carried along is what its list says."""

import hashlib
import re
from importlib.resources import files

from muster.web.assets import Assets

STATIC = files("muster.web") / "static"


def test_all_script_and_style_together_stay_below_200_kilobytes() -> None:
    assert Assets().total_bytes() < 200_000


def test_what_is_carried_along_is_unchanged() -> None:
    listed = re.findall(r"^\| `([\w.]+)` \|.*`([0-9a-f]{64})` \|$", (STATIC / "VENDOR.md").read_text(), re.M)
    assert {name for name, _ in listed} == {"uplot.js", "uplot.css"}
    for name, mark in listed:
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == mark, name


def test_a_name_changes_with_what_is_in_it() -> None:
    for name in ("muster.js", "muster.css"):
        mark = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
        assert mark in Assets().url(name)
