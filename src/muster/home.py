"""Where Muster lives on a machine: state, socket, logs and configuration, all below one folder.

``MUSTER_HOME`` says where; otherwise it is the user's state folder. Only the standard library: the command
line looks here before anything else.
"""

import os
from pathlib import Path


class Home:
    """The folder, and the names in it."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = Path(path) if path else _default()

    @property
    def socket(self) -> Path:
        return self.path / "muster.sock"

    @property
    def database(self) -> Path:
        return self.path / "muster.db"

    @property
    def keeper_socket(self) -> Path:
        return self.path / "keeper.sock"

    @property
    def keeper(self) -> Path:
        """The keeper's records."""
        return self.path / "keeper"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def configuration(self) -> Path:
        return self.path / "muster.toml"

    @property
    def server_lock(self) -> Path:
        return self.path / "server.lock"

    def make(self) -> None:
        """Others may walk through to the socket and to their own logs, and see nothing else."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o711)
        for folder in (self.logs, self.keeper):
            folder.mkdir(exist_ok=True)
        self.logs.chmod(0o711)
        self.keeper.chmod(0o700)


def _default() -> Path:
    given = os.environ.get("MUSTER_HOME")
    if given:
        return Path(given)
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "muster"
