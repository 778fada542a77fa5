"""Signs of progress, seen in files."""

import os
from pathlib import Path

from muster.home import Home
from muster.monitor.meters.gather import Attended
from muster.server.signs import Signs


def test_a_checkpoint_that_is_written_after_the_clock_was_set_back_is_a_sign(tmp_path: Path) -> None:
    home = Home(tmp_path)
    folder = home.logs / "7" / "checkpoint"
    folder.mkdir(parents=True)
    now = [1000.0]
    signs = Signs(home, lambda: now[0])
    attended = (Attended("7", 1, (), ()),)
    signs.look(attended)
    now[0] = 1060.0
    for path, hours in ((folder / "saved", 5), (folder, 5)):
        path.touch()
        before = path.stat().st_mtime - hours * 3600
        os.utime(path, (before, before))
    signs.look(attended)
    last = {sign.kind: sign.last_at for sign in signs.of(("7", 1))}
    assert last == {"checkpoint": 1060.0, "log": None, "report": None}
