"""``muster layout``, without a server."""

import json
from pathlib import Path

import pytest
import yaml
from sites import DELTA

from muster.cli.main import run
from muster.layout.file import parse_layout

Said = pytest.CaptureFixture[str]
SAMPLES = Path(__file__).parent


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_discovered_is_accepted_by_check_and_shown(home: Path, capsys: Said) -> None:
    assert run(["layout", "discover"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("# Found on ")
    (home / "layout.yaml").write_text(text)
    assert run(["layout", "check"]) == 0
    assert "and is drawn in 'unplaced'" in capsys.readouterr().out
    assert run(["layout"]) == 0
    assert "in 1 node; 1 node without a place." in capsys.readouterr().out


def test_discover_tells_each_fact_with_its_source(capsys: Said) -> None:
    assert run(["layout", "discover", "-o", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)["facts"]
    assert {"about", "value", "source"} == set(facts[0])


def test_a_file_is_drawn_by_itself(capsys: Said) -> None:
    assert run(["layout", "show", str(DELTA)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("delta: 400 GPUs in 100 nodes, 10 racks.\n")
    assert "│▪▪▪▪ 037│" in out
    assert "unplaced" not in out


def test_the_map_as_data_has_boxes_and_sources(capsys: Said) -> None:
    assert run(["layout", "show", str(DELTA), "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert len(shown["boxes"]) == 512
    assert set(shown["boxes"][-1]) >= {"id", "x", "y", "w", "h", "parent"}
    assert shown["nodes"][0]["facts"][0] == {"about": "rack", "value": "R01", "source": "delta.yaml, line 9"}
    assert run(["layout", "show", str(DELTA), "-o", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == shown


def test_check_says_what_is_wrong_and_exits_1(home: Path, capsys: Said) -> None:
    (home / "bad.yaml").write_text(DELTA.read_text().replace("from_u: 2", "from_u: 30"))
    assert run(["layout", "check", "bad.yaml"]) == 1
    assert (
        "bad.yaml, line 9: 'gpub007' would reach U43 of rack 'R01', which has 42" in capsys.readouterr().out
    )
    assert run(["layout", "check", str(DELTA)]) == 0
    assert capsys.readouterr().out == "delta.yaml: nothing to say against it\n"


def test_diff_exits_1_if_anything_differs(home: Path, capsys: Said) -> None:
    (home / "new.yaml").write_text(DELTA.read_text().replace("A40, count", "A100, count"))
    assert run(["layout", "diff", str(DELTA), str(DELTA)]) == 0
    assert capsys.readouterr().out == "nothing differs\n"
    assert run(["layout", "diff", str(DELTA), "new.yaml"]) == 1
    assert capsys.readouterr().out == "changed node gpub[001-100]: GPU model A40 → A100\n"


@pytest.mark.parametrize("sample", ["racksdb.yml", "netbox.json"])
def test_what_is_imported_is_a_layout(sample: str, capsys: Said) -> None:
    assert run(["layout", "import", str(SAMPLES / sample)]) == 0
    assert parse_layout(capsys.readouterr().out).site == "north"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sho"], "unknown word 'sho'; did you mean 'show'?"),
        (["diff", "one.yaml"], "diff takes two files"),
        (["discover", "one.yaml"], "discover takes no file"),
        (["check"], "name a file, or make one with 'muster layout discover'"),
        (["check", "none.yaml"], "none.yaml can't be read: No such file or directory"),
        (["check", "."], ". is not a regular file"),
        (["show", "--role", "x"], "--role goes with import"),
        (["import", str(SAMPLES / "racksdb.yml"), "--role", "x"], "--role goes with NetBox's JSON"),
    ],
)
def test_wrong_words_get_a_sentence_and_exit_2(words: list[str], said: str, capsys: Said) -> None:
    assert run(["layout", *words]) == 2
    assert said in capsys.readouterr().err
