"""The unit in the how-to is one that systemd understands."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/how-to/run-muster-as-a-service.md"


def test_systemd_has_nothing_to_say_about_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    text = re.search(r"^```ini\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert text is not None
    command = tmp_path / "muster"
    command.write_text(f"#!{sys.executable}\n")
    command.chmod(0o755)
    unit = tmp_path / "muster.service"
    unit.write_text(text[1].replace("/opt/muster/bin/muster", str(command)))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
