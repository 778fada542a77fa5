"""How Muster stands to a cluster: who chooses the nodes, and in whose name jobs are handed over."""

from typing import Literal

import msgspec

Mode = Literal["govern", "place"]
GOVERN, PLACE = "govern", "place"


class SlurmSettings(msgspec.Struct, frozen=True):
    """Empty is what the cluster does for those who say nothing."""

    mode: Mode = "govern"  # Slurm schedules, Muster lets go; place: Muster chooses node and time
    observe: bool = False  # look, and change nothing there
    conf: str = ""  # SLURM_CONF; empty: as the environment or the installation says
    rest: str = ""  # where slurmrestd is, as unix:/run/slurmrestd.sock; empty: by Slurm's commands
    rest_token: str = ""  # the file with a token for it; empty: SLURM_JWT, or none
    partition: str = ""  # empty: one that has the nodes chosen, the default before others
    account: str = ""
    qos: str = ""
    options: tuple[str, ...] = ()  # for sbatch, before Muster's own
    soon_seconds: float = 60.0  # in ``place``: a job that Slurm has not started by then is taken back
    period_seconds: float = 5.0  # between two looks, while nothing of ours is under way
