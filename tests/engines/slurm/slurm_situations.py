"""Recorded situations: real answers of real Slurm, each with what was really the case.

Two folders hold them: one that the project carries, small, of what differs between versions; and the
whole, wherever MUSTER_RECORDED says, with ``slurm/22.05.8`` and so on in it.
"""

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

CARRIED = Path(__file__).parent / "recorded"
VERSIONS = ("22.05.8", "24.11.5", "26.05.5")
WHOLE = os.environ.get("MUSTER_RECORDED")


class Situation:
    """One of ``truth.json``: what was the case, in prose and in facts, and the files that tell of it."""

    def __init__(self, folder: Path, name: str, told: dict[str, Any]) -> None:
        self.folder, self.name = folder, name
        self.prose: str = told["truth"]
        self.facts: list[dict[str, Any]] = [fact for fact in told.get("facts", []) if "JobId" in fact]
        self.files: list[dict[str, Any]] = told["files"]

    @property
    def version(self) -> str:
        return self.folder.name

    def bytes_of(self, file: dict[str, Any]) -> bytes:
        return (self.folder / file["file"]).read_bytes() if file["file"] else b""

    def said(self, command: str, *, json: bool) -> list[dict[str, Any]]:
        """The files with what a command said that begins with these words."""
        words = command.split()
        return [
            file
            for file in self.files
            if file["file"]
            and file["cmd"].split()[: len(words)] == words
            and ("--json" in file["cmd"]) is json
        ]

    @cached_property
    def queues(self) -> list[bytes]:
        """Its answers of squeue; where it has none, those of its version in which its job may be."""
        own = self.said("squeue", json=True) + self.said("scontrol show job", json=True)
        if own:
            return [self.bytes_of(file) for file in own if "=" not in file["cmd"]]
        return [path.read_bytes() for path in sorted(self.folder.glob("*.squeue.json"))] if self.facts else []

    def __repr__(self) -> str:
        return f"{self.version} {self.name}"


def situations(root: Path) -> list[Situation]:
    found = []
    for version in VERSIONS:
        folder = root / version
        told = json.loads((folder / "truth.json").read_bytes())
        found += [Situation(folder, name, one) for name, one in told.items()]
    return found


def whole() -> list[Situation]:
    return situations(Path(WHOLE) / "slurm") if WHOLE else []
