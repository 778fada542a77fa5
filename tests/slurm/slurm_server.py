"""A real Muster server on a cluster, as a process that can be killed and started again."""

import os
import subprocess
import sys
from pathlib import Path

from slurm_cluster import Cluster

import servers

_CONFIGURATION = """
[engine]
kind = "slurm"
[slurm]
conf = "{conf}"
decide = "{mode}"
period = "500ms"
soon = "10s"
{more}
"""


class SlurmServer(servers.Server):
    """In a home of its own, unless one is given. ``user``: whose process it is; ``more``: configuration."""

    def __init__(
        self, cluster: Cluster, mode: str = "govern", user: str = "", home: Path | None = None, more: str = ""
    ) -> None:
        super().__init__(home=home)
        self._user = user
        text = _CONFIGURATION.format(conf=cluster.conf, mode=mode, more=more)
        self.home.configuration.write_text(text)
        if user:
            for path in (self.home.path, self.work, self.home.configuration):
                servers.shutil.chown(path, user)

    def command(self) -> list[str]:
        return [*self._become(), *super().command()]

    def as_owner(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """The command line, as the user whose server this is."""
        return subprocess.run(
            [*self._become(), sys.executable, "-m", "muster", *words],
            env={**os.environ, "MUSTER_HOME": str(self.home.path), "HOME": str(self.work)},
            cwd=self.work,
            capture_output=True,
            text=True,
            check=False,
        )

    def sh_as_owner(self, script: str) -> servers.View:
        """Submit a line of shell as the user whose server this is: it takes no other's jobs."""
        done = self.as_owner("submit", "-o", "name", "--", "sh", "-c", script)
        assert done.returncode == 0, done.stderr
        return {"id": done.stdout.strip().rpartition("/")[2]}

    def _become(self) -> list[str]:
        return ["setpriv", f"--reuid={self._user}", "--clear-groups", "--"] if self._user else []

    def close(self) -> None:
        self.kill()
        servers.shutil.rmtree(self.home.path, ignore_errors=True)
        servers.shutil.rmtree(self.work, ignore_errors=True)
