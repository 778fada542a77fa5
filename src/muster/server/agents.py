"""Agents on the nodes of a cluster tell here what they have read.

An agent's token names the nodes that it speaks for, as Slurm writes lists of them. Whoever is no agent may
tell readings only as an admin, who could make such a token: what a job uses is not for its owner to say.
"""

from muster.engines.slurm.hostlist import unfolded
from muster.model.errors import BadInput
from muster.monitor.agents.message import Heard, Told
from muster.server.errors import Forbidden
from muster.server.http import Call, Route
from muster.server.people import AGENT, Person
from muster.server.service import Service


def agent_table(service: Service) -> list[Route]:
    async def readings(call: Call) -> Heard:
        told: Told = call.body
        why = may_speak_for(call.person, told.node)
        if why is not None:
            raise Forbidden(why)
        assert service.metering is not None, "a server meters"
        return service.metering.hear(told)

    summary = "What an agent has read on its node."
    path, errors = "/api/v1/agent/readings", (403, 413)
    return [
        Route("POST", path, readings, Heard, summary, body=Told, errors=errors, for_agents=True),
    ]


def may_speak_for(person: Person, node: str) -> str | None:
    """None if they may, or a sentence why not."""
    if person.role == AGENT:
        return (
            None
            if node in _nodes_of(person.name)
            else f"this token speaks for {person.name}, not for {node!r}"
        )
    return None if person.role == "admin" else "only agents and admins tell what is used on a node"


def _nodes_of(names: str) -> tuple[str, ...]:
    try:
        return unfolded(names)
    except BadInput:
        return ()
