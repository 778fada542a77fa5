"""Muster: a compute resource manager for teams that share GPUs."""

TYPE_CHECKING = False  # typing's own would have to be imported, and this is on everybody's path
if TYPE_CHECKING:
    from muster.client import Client as Client
    from muster.reporting import report as report

__version__ = "0.1.0"
_LATE = {"Client": "muster.client", "report": "muster.reporting"}


def __getattr__(name: str) -> object:
    """``muster.Client`` and ``muster.report``, imported when they are asked for."""
    if name not in _LATE:
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - the command line does without

    return getattr(import_module(_LATE[name]), name)
