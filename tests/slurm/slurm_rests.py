"""slurmrestd beside a cluster: on a socket that knows who is asking, and on TCP for who shows a token.

It runs outside the cluster's namespaces, as it wants to see the processes that ask; and goes with the tests.
"""

import socket
import subprocess

from slurm_cluster import Cluster, free_ports


class Rests:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self) -> str:
        """As root, for root: what rest in [slurm] is to be."""
        path = self._cluster.folder / "run" / "rest.sock"
        path.unlink(missing_ok=True)
        self._run("root", "rest_auth/local", f"unix:{path}")
        self._cluster.until(path.exists, "slurmrestd")
        return f"unix:{path}"

    def start_by_token(self) -> str:
        """As a user without rights, who believes tokens."""
        (port,) = free_ports(1)
        self._run("nobody", "rest_auth/jwt", f"127.0.0.1:{port}", SLURM_JWT="daemon")
        self._cluster.until(lambda: _listens(port), "slurmrestd")
        return f"http://127.0.0.1:{port}"

    def token(self, user: str = "root", seconds: int = 600) -> str:
        """As ``scontrol token`` prints it."""
        return self._cluster.ask("scontrol", "token", f"username={user}", f"lifespan={seconds}")

    def kill(self) -> None:
        """All of them, at once."""
        for process in self._running:
            process.kill()
            process.wait()
        self._running.clear()

    def _run(self, user: str, believes: str, where: str, **more: str) -> None:
        """It does not like to be root, which only a test has a reason for."""
        become = ("setpriv", f"--reuid={user}", "--clear-groups", "--pdeathsig=KILL", "--")
        with open(self._cluster.folder / "log" / "slurmrestd.log", "a", encoding="utf-8") as log:
            process = subprocess.Popen(
                [*become, "slurmrestd", "-a", believes, where],
                env={**self._cluster.environment(), "SLURMRESTD_SECURITY": "disable_user_check", **more},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._running.append(process)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
