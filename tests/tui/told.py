"""What a server would tell, made up."""

from typing import Any

from muster.tui.seen import JOBS, Seen

NOW = 1_794_826_452.0
STATES = ("working", "held idle", "free", "down", "drained", "unknown")


def job(number: str, **more: Any) -> dict[str, Any]:
    return {
        "id": number,
        "name": "fit",
        "owner": "ana",
        "team": "vision",
        "purpose": "Does 8B beat 3B?",
        "effort": None,
        "state": "RUNNING",
        "gpus": 4.0,
        "cpus": 8.0,
        "nodes": "a1",
        "share": 0.81,
        "budget": None,
        "started_at": NOW - 7200,
        "ends_at": NOW + 600,
        "reason": None,
        "undefended": None,
        "defended_at": None,
        **more,
    }


def strip(name: str, use: str, states: str) -> dict[str, Any]:
    return {"name": name, "use": use.split(), "states": states.split()}


def top(*jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    counts = dict.fromkeys(STATES, 0) | {"working": 5, "held idle": 1, "free": 2}
    strips = [strip("R1", "▇▇▇▇ █▁··", "■■■■ ■▨□□")]
    return {
        "site": "lab",
        "at": NOW,
        "simulated": False,
        "generation": 1,
        "counts": counts,
        "share": 0.57,
        "undefended": 0,
        "by": "gpu",
        "strips": strips,
        "cpus": None,
        "running": len(jobs),
        "waiting": 0,
        "jobs": list(jobs),
        "more": 0,
        **more,
    }


def seen(*jobs: dict[str, Any], mode: str = JOBS, away: str | None = None, **more: Any) -> Seen:
    sparks = {"1": [None] * 12 + [0.0, 0.1, 0.3, 0.5, 0.7, 1.0] * 2}
    return Seen(top(*jobs, **more), mode, NOW - 1, sparks, away=away)
