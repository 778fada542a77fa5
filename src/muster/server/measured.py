"""By what something is measured: coverage says how much of it was, and this, whose word it is."""

from collections import Counter
from collections.abc import Iterable

from muster.model.snapshot import Running
from muster.model.state import State
from muster.monitor.agents.merge import BY_AGENTS
from muster.server import answers
from muster.server.metering import ITSELF, Metering, nodes_of

BY_SLURM = "slurm"
_NOTHING = "none"


def measured_by(metering: Metering, running: Running) -> answers.MeasuredBy:
    by, nodes = metering.source_of(running), len(nodes_of(running))
    agents = metering.agents_of(running)
    has_gpus = any(seat.devices for seat in running.seats)
    return answers.MeasuredBy(by, nodes, agents, _text(by, nodes, agents, has_gpus))


def _text(by: str | None, nodes: int, agents: int, has_gpus: bool) -> str:
    on = "the agent on its node" if nodes == 1 else f"agents on {agents} of {nodes} nodes"
    if by == BY_AGENTS:
        return f"by {on}"
    if by == BY_SLURM:
        gpus = f"; GPUs by {on}" if agents else ", no GPUs"
        return f"by Slurm's own accounting: cpu and memory{gpus if has_gpus else ''}"
    return "by Muster's own meters" if by == ITSELF else "by nothing lately"


def sources(metering: Metering, running: Iterable[Running]) -> dict[str, int]:
    """Where there are several: what measures how many of those that run."""
    if not metering.has_sources:
        return {}
    at_work = (one for one in running if one.state in (State.RUNNING, State.SUSPENDED))
    return dict(Counter(metering.source_of(one) or _NOTHING for one in at_work))
