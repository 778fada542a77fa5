"""Which of its interfaces slurmrestd offers, and which is spoken: the newest of those that are known.

Slurm 22.05 has v0.0.36 to 38, 24.11 has 40 to 42, 26.05 has 43 to 45: each version speaks three. The answers
of the newest are those of that version's ``--json``. Whether it can do a thing is asked of the description
that it gives of itself (``/openapi/v3``), not remembered by version.
"""

import re
from typing import Any

import msgspec

from muster.engines.slurm.errors import BadAnswer, BadConfiguration

KNOWN = (38, 40, 41, 42, 43, 44, 45)
OLD = 38  # the one that takes jobs in words of its own; since 40 they are as in the answers
_PATH = re.compile(r"/(slurm|slurmdb)/v0\.0\.([0-9]{1,4})(/.*)", re.ASCII)
_JOBS = "/slurmdb/v0.0.{}/jobs"


class Api(msgspec.Struct, frozen=True):
    """What is offered under one number."""

    number: int
    does: frozenset[str]  # "GET /slurm/jobs", "POST /slurm/node/{}"
    takes: frozenset[str] | None = None  # the keys of a job; None: it does not say in one place
    filters: frozenset[str] = frozenset()  # of accounting's jobs

    @property
    def is_old(self) -> bool:
        return self.number <= OLD

    def path(self, of: str) -> str:
        """``/slurm/jobs`` → as it is asked for."""
        _, kind, rest = of.split("/", 2)
        return f"/{kind}/v0.0.{self.number}/{rest}"


class _Description(msgspec.Struct):
    paths: dict[str, dict[str, Any]]
    components: dict[str, Any] = {}


def read_api(answer: bytes) -> Api:
    try:
        found = msgspec.json.decode(answer, type=_Description)
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise BadAnswer("slurmrestd", f"its description of itself is another: {wrong}") from None
    offers = _offers(found)
    spoken = [number for number in KNOWN if "GET /slurm/jobs" in offers.get(number, ())]
    if not spoken:
        has = ", ".join(f"v0.0.{number}" for number in sorted(offers)) or "none"
        raise BadConfiguration(
            f"slurmrestd offers no interface that Muster knows ({has}; known are v0.0.{KNOWN[0]} to "
            f"v0.0.{KNOWN[-1]}): leave rest in [slurm] out, to go by Slurm's commands"
        )
    number = spoken[-1]
    return Api(number, frozenset(offers[number]), _takes(found, number), _filters(found, number))


def _offers(found: _Description) -> dict[int, set[str]]:
    offers: dict[int, set[str]] = {}
    for path, methods in found.paths.items():
        match = _PATH.fullmatch(path)
        if match is not None:
            plain = re.sub(r"\{[^}]*\}", "{}", match[3]).rstrip("/")
            does = offers.setdefault(int(match[2]), set())
            does.update(f"{method.upper()} /{match[1]}{plain}" for method in methods)
    return offers


def _takes(found: _Description, number: int) -> frozenset[str] | None:
    schemas = found.components.get("schemas")
    job = schemas.get(f"v0.0.{number}_job_desc_msg") if isinstance(schemas, dict) else None
    keys = job.get("properties") if isinstance(job, dict) else None
    return frozenset(keys) if isinstance(keys, dict) else None


def _filters(found: _Description, number: int) -> frozenset[str]:
    jobs = next((of for path, of in found.paths.items() if path.rstrip("/") == _JOBS.format(number)), {})
    get = jobs.get("get")
    named = get.get("parameters") if isinstance(get, dict) else None
    return frozenset(str(one.get("name")) for one in named or () if isinstance(one, dict))
