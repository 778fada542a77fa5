"""``python slurm_select.py FOLDER``: makes the small selection that the project carries from the whole
recordings.

Of each version those situations in which the versions differ, and of those the answers that Muster asks
for. White space is left out, and so are a queue's other jobs (22.05 always answers the whole queue) and
steps of accounting.
"""

import json
import sys
from pathlib import Path
from typing import Any

from slurm_situations import CARRIED, VERSIONS

ALL = ("idle", "running-gang", "preempted-running-again", "oom", "munge-down")
CHOSEN = {
    "22.05.8": (*ALL, "array-limit", "odd-strings", "time-unlimited", "preempting-now", "slurmctld-down"),
    "24.11.5": (
        *ALL,
        "special-exit",
        "time-unlimited",
        "preempting-now",
        "failed-step-signal",
        "node-draining",
    ),
    "26.05.5": (*ALL, "odd-strings", "owner-suspend", "deadline"),
}
_READ = ("squeue --json", "sacct ", "sinfo --json", "scontrol show node", "scontrol -d -o show node", "sstat")
_READ_TOO = (
    "scontrol suspend",
    "scontrol resume",
    "scontrol -o show partition",
    "scontrol -o show reservation",
)


def select(whole: Path) -> None:
    for version in VERSIONS:
        source, target = whole / version, CARRIED / version
        target.mkdir(parents=True, exist_ok=True)
        truth = json.loads((source / "truth.json").read_bytes())
        kept = {name: _kept(truth[name], source, target) for name in CHOSEN[version]}
        (target / "truth.json").write_text(json.dumps(kept, ensure_ascii=False, separators=(",", ":")) + "\n")


def _kept(told: dict[str, Any], source: Path, target: Path) -> dict[str, Any]:
    files = [file for file in told["files"] if _is_kept(file)]
    ids = {int(fact["JobId"]) for fact in told.get("facts", []) if "JobId" in fact}
    for name in {file["file"] for file in files} - {None}:
        found = (source / name).read_bytes()
        slimmed = _slim(json.loads(found), ids) if name.endswith(".json") else found
        _add(target / name, slimmed)
    short = {"truth": told["truth"].partition("output:")[0], "files": [_brief(file) for file in files]}
    return {**short, **{key: told[key] for key in ("job", "facts") if key in told}}


def _is_kept(file: dict[str, Any]) -> bool:
    cmd = file["cmd"]
    return bool(file["rc"]) or (cmd.startswith((*_READ, *_READ_TOO)) and "-r" not in cmd.split())


def _brief(file: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in file.items() if key in ("file", "rc", "stderr")}
    return {**kept, "cmd": file["cmd"].partition(" --format=")[0]}


def _slim(answer: dict[str, Any], ids: set[int]) -> dict[str, Any]:
    if "jobs" in answer and ids:
        answer["jobs"] = [job for job in answer["jobs"] if job["job_id"] in ids]
    for job in answer.get("jobs", []):
        job.pop("steps", None)
    return answer


def _add(path: Path, found: Any) -> None:
    """A queue of several situations keeps the jobs of all of them."""
    if isinstance(found, bytes):
        path.write_bytes(found)
        return
    if path.exists() and "jobs" in found:
        earlier = json.loads(path.read_bytes())["jobs"]
        fresh = {json.dumps(job, sort_keys=True) for job in found["jobs"]}
        found["jobs"] += [job for job in earlier if json.dumps(job, sort_keys=True) not in fresh]
    path.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    select(Path(sys.argv[1]) / "slurm")
