"""Where Muster lives on a machine: state, socket, logs and configuration, all below one folder.

``MUSTER_HOME`` says where; otherwise it is the user's state folder. Only the standard library: the command
line looks here before anything else.
"""

import os

TYPE_CHECKING = False  # typing's own costs milliseconds to import, and so does pathlib
if TYPE_CHECKING:
    from pathlib import Path

_SOCKET = "muster.sock"


def socket_of(home: "str | os.PathLike[str] | None") -> str:
    """Where the server listens, found without more than a command line needs."""
    return os.path.join(home or _default(), _SOCKET)


class Home:
    """The folder, and the names in it."""

    def __init__(self, path: "str | os.PathLike[str] | None" = None) -> None:
        from pathlib import Path  # noqa: PLC0415 - see above

        self.path = Path(path or _default())
        self.logs = self.path / "logs"

    @property
    def socket(self) -> "Path":
        return self.path / _SOCKET

    @property
    def database(self) -> "Path":
        return self.path / "muster.db"

    @property
    def keeper_socket(self) -> "Path":
        return self.path / "keeper.sock"

    @property
    def keeper(self) -> "Path":
        """The keeper's records."""
        return self.path / "keeper"

    @property
    def clock(self) -> "Path":
        """From when on time is reckoned on this machine."""
        return self.keeper / "clock"

    @property
    def engine(self) -> "Path":
        """Which engine has run its jobs."""
        return self.path / "engine"

    @property
    def configuration(self) -> "Path":
        return self.path / "muster.toml"

    @property
    def layout(self) -> "Path":
        """What stands where, if somebody wrote it down."""
        return self.path / "layout.yaml"

    @property
    def server_lock(self) -> "Path":
        return self.path / "server.lock"

    def make(self) -> None:
        """Others may walk through to the socket and to their own logs, and see nothing else."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o711)
        for folder in (self.logs, self.keeper):
            folder.mkdir(exist_ok=True)
        self.logs.chmod(0o711)
        self.keeper.chmod(0o700)


def _default() -> str:
    return os.environ.get("MUSTER_HOME") or own_state()


def own_state() -> str:
    """The folder of this user, for what is theirs wherever the server is."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "muster")
