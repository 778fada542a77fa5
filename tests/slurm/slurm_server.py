"""A real Muster server on a cluster, as a process that can be killed and started again."""

import os
import subprocess
import sys
from pathlib import Path

from slurm_cluster import Cluster

import servers

_SERVE = str(Path(__file__).with_name("serve_on_slurm.py"))


class SlurmServer(servers.Server):
    """In a home of its own, unless one is given. ``user``: whose process it is."""

    def __init__(
        self, cluster: Cluster, mode: str = "govern", user: str = "", home: Path | None = None
    ) -> None:
        super().__init__(home=home)
        self._cluster, self._mode, self._user = cluster, mode, user
        if user:
            for path in (self.home.path, self.work):
                servers.shutil.chown(path, user)

    def command(self) -> list[str]:
        return [
            *self._become(),
            sys.executable,
            _SERVE,
            str(self.home.path),
            self._cluster.conf,
            self._mode,
        ]

    def sh_as_owner(self, script: str) -> servers.View:
        """Submit a line of shell as the user whose server this is: it takes no other's jobs."""
        done = subprocess.run(
            [
                *self._become(),
                sys.executable,
                "-m",
                "muster",
                "submit",
                "-o",
                "name",
                "--",
                "sh",
                "-c",
                script,
            ],
            env={**os.environ, "MUSTER_HOME": str(self.home.path), "HOME": str(self.work)},
            cwd=self.work,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return {"id": done.stdout.strip().rpartition("/")[2]}

    def _become(self) -> list[str]:
        return ["setpriv", f"--reuid={self._user}", "--clear-groups", "--"] if self._user else []

    def close(self) -> None:
        self.kill()
        servers.shutil.rmtree(self.home.path, ignore_errors=True)
        servers.shutil.rmtree(self.work, ignore_errors=True)
