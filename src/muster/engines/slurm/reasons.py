"""Why a job waits: Slurm's reasons as sentences, with what to do.

Most are in a table. Those of accounting limits are made of parts (``QOSMaxGRESPerUser``,
``AssocGrpCPUMinutesLimit``) and are put into words by them. A reason that is neither is shown as it is,
as unknown, and reported once.
"""

import re

import msgspec

from muster.engines.slurm.answers import SlurmJob
from muster.engines.slurm.notices import Notices


class Why(msgspec.Struct, frozen=True):
    """A sentence, and what can be done about it. ``never``: it will not start as it is."""

    sentence: str
    todo: str = ""
    never: bool = False
    known: bool = True

    def __str__(self) -> str:
        return f"{self.sentence}; {self.todo}" if self.todo else self.sentence


_WAIT = "it starts by itself"
_RELEASE = "release it with `scontrol release`"
_ADMIN = "ask a Slurm operator"

HOLDS = frozenset(
    (
        *("JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue", "BadConstraints", "ReservationDeleted"),
        *("job requeued in held state", "launch failed requeued held", "job_requeued_in_held_state"),
    )
)
"""Reasons of a job that waits for a person."""

SENTENCES: dict[str, Why] = {
    "None": Why("Slurm has not looked at it yet", _WAIT),
    "": Why("Slurm gives no reason", _WAIT),
    "Priority": Why("others are before it", _WAIT),
    "Resources": Why("what it asks for is not free together yet", _WAIT),
    "Dependency": Why("it waits for another job to end", _WAIT),
    "DependencyNeverSatisfied": Why(
        "a job that it waits for ended otherwise than it must",
        "cancel it, or submit it again without that",
        True,
    ),
    "BeginTime": Why("it is not to begin before its time", "it starts by itself after that"),
    "JobHeldUser": Why("its owner holds it", _RELEASE),
    "JobHeldAdmin": Why("an operator holds it", f"{_ADMIN} to release it"),
    "JobHoldMaxRequeue": Why(
        "it was requeued too often, so Slurm holds it", f"see why it fails, then {_RELEASE}"
    ),
    "job requeued in held state": Why("it was requeued, and is held", _RELEASE),
    "launch failed requeued held": Why(
        "it could not be launched on its node, was requeued, and is held",
        f"see the node's reason, then {_RELEASE}",
    ),
    "BadConstraints": Why("no node can have what it asks for", "ask for other features or nodes", True),
    "Licenses": Why("the licenses that it asks for are in use", _WAIT),
    "Reservation": Why("its reservation has not begun", "it starts by itself then"),
    "ReservationDeleted": Why("its reservation was deleted", "submit it without one", True),
    "ReqNodeNotAvail": Why("a node that it asks for is not available", "wait for it, or ask for others"),
    "ReservedNodes": Why("the nodes that it asks for are reserved", "wait, or ask for others"),
    "NodeDown": Why("a node that it needs is down", "wait for it, or ask for others"),
    "FrontEndDown": Why("no front end is up", _ADMIN),
    "PartitionDown": Why("its partition is down", "wait, or choose another partition"),
    "PartitionInactive": Why("its partition is inactive", "choose another partition"),
    "PartitionNodeLimit": Why(
        "it asks for more or fewer nodes than its partition allows",
        "change the number of nodes, or the partition",
        True,
    ),
    "PartitionTimeLimit": Why(
        "it asks for more time than its partition allows", "ask for less, or choose another partition", True
    ),
    "PartitionConfig": Why("its partition's settings don't allow it", "choose another partition", True),
    "JobArrayTaskLimit": Why("as many tasks of its array run as may at a time", _WAIT),
    "AccountNotAllowed": Why(
        "its account may not use the partition", "use another account or partition", True
    ),
    "QOSNotAllowed": Why("its QOS may not be used there", "use another QOS or partition", True),
    "InvalidAccount": Why("its account is not valid", "use one of yours", True),
    "InvalidQOS": Why("its QOS is not valid", "use one of yours", True),
    "QOSUsageThreshold": Why(
        "its QOS has used too much lately", "wait until that has decayed, or use another QOS"
    ),
    "QOSResourceLimit": Why("its QOS is at a limit on resources", "wait, or use another QOS"),
    "QOSJobLimit": Why("its QOS is at its limit of jobs", "wait, or use another QOS"),
    "QOSTimeLimit": Why("its QOS is at its limit of time", "wait, or use another QOS"),
    "AssociationJobLimit": Why("its account is at its limit of jobs", "wait, or use another account"),
    "AssociationResourceLimit": Why("its account is at a limit on resources", "wait, or use another account"),
    "AssociationTimeLimit": Why("its account is at its limit of time", "wait, or use another account"),
    "AccountingPolicy": Why("a limit of accounting is reached", "wait, or ask for less"),
    "MaxMemPerLimit": Why("it asks for more memory than its partition allows", "ask for less", True),
    "MaxPowercap": Why("the cluster is at its limit of power", _WAIT),
    "MCSAllocated": Why("its node runs jobs of another security label", _WAIT),
    "Cleaning": Why("an earlier try of it is still being cleaned up", _WAIT),
    "Prolog": Why("its prolog runs", _WAIT),
    "BurstBufferOperation": Why("its burst buffer could not be set up", f"{_ADMIN}, or {_RELEASE}"),
    "BurstBufferResources": Why("no room in the burst buffer yet", _WAIT),
    "BurstBufferStageIn": Why("its data are being brought to the burst buffer", _WAIT),
    "FedJobLock": Why("another cluster of the federation tries to start it", _WAIT),
    "SchedDefer": Why("it is scheduled in turns, not at once", _WAIT),
    "SystemFailure": Why("something failed within Slurm", _ADMIN),
    "InactiveLimit": Why("it was idle for too long", "submit it again"),
    "JobLaunchFailure": Why("it could not be launched, or died by a signal", "see its output and exit code"),
    "NonZeroExitCode": Why("it ended with a code that is not zero", "see its output"),
    "RaisedSignal": Why("it died by a signal", "see its output"),
    "TimeLimit": Why("it reached its time limit", "ask for more, or save and resume"),
    "OutOfMemory": Why("it used more memory than it asked for", "ask for more"),
    "DeadLine": Why("its deadline has passed", "submit it again with a later one"),
}
SENTENCES["job_requeued_in_held_state"] = SENTENCES["job requeued in held state"]

_LIMIT = re.compile(
    r"(Assoc|QOS)(Grp|Max|Min)(Cpu|CPU|Mem|Node|GRES|Gres|License|Lic|Energy|BB|Billing|Unknown|Jobs?|SubmitJobs?|Submit|"
    r"WallDuration|Wall|Accrue)(RunMinutes|Minutes)?(PerJob|PerUser|PerAccount|PerAcct|PerNode)?(Limit|NotSatisfied)?"
)
_WHOSE = {"Assoc": "its account", "QOS": "its QOS"}
_WHAT = {
    "cpu": "cpus",
    "mem": "memory",
    "node": "nodes",
    "gres": "GPUs or other GRES",
    "license": "licenses",
    "lic": "licenses",
    "energy": "energy",
    "bb": "burst buffer",
    "billing": "billing units",
    "unknown": "some resource",
    "job": "running jobs",
    "jobs": "running jobs",
    "submit": "jobs at all",
    "submitjob": "jobs at all",
    "submitjobs": "jobs at all",
    "wall": "time",
    "wallduration": "time",
    "accrue": "jobs that gain priority",
}
_PER = {
    "PerJob": " for one job",
    "PerUser": " for one user",
    "PerAccount": " for one account",
    "PerAcct": " for one account",
    "PerNode": " on one node",
}
_NODES = re.compile(r"UnavailableNodes:(\S+)")


def why(job: SlurmJob, notices: Notices) -> Why:
    """Why a job waits (or, of one that has ended, how that came)."""
    found = _by_detail(job.detail) or SENTENCES.get(job.reason) or _limit(job.reason)
    if found is None:
        notices.note("reason", job.reason, "squeue")
        return Why(f"Slurm says {job.detail or job.reason!r}, which Muster does not know", known=False)
    return _with_detail(found, job)


def _by_detail(detail: str) -> Why | None:
    """Words that Slurm puts in the reason's place: the reason beside them says only half of it."""
    return SENTENCES.get(detail) if detail else None


def _limit(reason: str) -> Why | None:
    match = _LIMIT.fullmatch(reason)
    if match is None:
        return None
    whose, how, what, minutes, per, _ = match.groups()
    said = _WHAT[what.lower()] + {"Minutes": " × minutes", "RunMinutes": " × minutes of what runs"}.get(
        minutes, ""
    )
    if how == "Min":
        return Why(f"{_WHOSE[whose]} demands more {said} than it asks for", "ask for more", never=True)
    if per in ("PerJob", "PerNode"):
        return Why(f"{_WHOSE[whose]} allows less {said}{_PER[per]}", "ask for less", never=True)
    return Why(
        f"{_WHOSE[whose]} is at its limit of {said}{_PER.get(per, '')}", "it starts when others of it end"
    )


def _with_detail(found: Why, job: SlurmJob) -> Why:
    """What Slurm adds: the nodes that are missing, the jobs that are waited for."""
    nodes = _NODES.search(job.detail)
    if nodes:
        return msgspec.structs.replace(found, sentence=f"{found.sentence} ({nodes[1]})")
    if job.reason.startswith("Dependency") and job.dependency:
        return msgspec.structs.replace(found, sentence=f"{found.sentence} ({job.dependency})")
    return found
