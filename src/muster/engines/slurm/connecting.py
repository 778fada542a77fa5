"""By which way Slurm is reached: as configured."""

from muster.engines.slurm.client import LIMIT_SECONDS, Slurm
from muster.engines.slurm.commands import Commands
from muster.engines.slurm.notices import Notices
from muster.engines.slurm.rest import Rest
from muster.engines.slurm.rest_line import Line, parse_place
from muster.engines.slurm.rest_token import Tokens
from muster.engines.slurm.settings import SlurmSettings


def connect(
    settings: SlurmSettings,
    *,
    limit_seconds: float = LIMIT_SECONDS,
    notices: Notices | None = None,
    kept_open: tuple[int, ...] = (),
    read_only: bool | None = None,
) -> Slurm:
    """Nothing is asked yet. ``read_only``: None is as configured."""
    commands = Commands(
        settings.conf or None,
        limit_seconds=limit_seconds,
        notices=notices,
        kept_open=kept_open,
        read_only=settings.observe if read_only is None else read_only,
    )
    if not settings.rest:
        return commands
    line = Line(parse_place(settings.rest), Tokens(settings.rest_token), limit_seconds=limit_seconds)
    return Rest(line, commands)
