"""What the cursor is on, as something that can be acted upon."""

from typing import Any

import msgspec

View = dict[str, Any]


class Target(msgspec.Struct, frozen=True):
    """``job``: what is stopped, held and opened. ``defended_as``: the job, array or effort to speak for."""

    title: str
    job: str | None
    state: str | None = None
    defended_as: str | None = None
    is_effort: bool = False

    @property
    def title_defended(self) -> str:
        return f"effort {self.defended_as}" if self.is_effort else self.title


def target_of(row: View) -> Target | None:
    """Of a line of jobs, or of the review; rows of use are nobody's."""
    if "subject" in row:
        kind, _, name = row["subject"].partition(":")
        is_effort = kind == "effort"
        only = row["jobs"][0] if len(row["jobs"]) == 1 else None
        job = name if kind == "job" else only
        return Target(row["what"], job, None, name if kind in ("job", "effort") else None, is_effort)
    if "id" not in row:
        return None
    title = f"job {row['id']} {row['name']}"
    if row["effort"]:
        return Target(title, row["id"], row["state"], row["effort"], is_effort=True)
    return Target(title, row["id"], row["state"], row["id"].partition("_")[0])
