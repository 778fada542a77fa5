"""What people at the simulated site run, by name: shapes, lengths, charters, and how each uses what it holds.

A *kind* is work that comes again and again under one name. The name is the key: whoever sees a job, in the
past or now, knows by it how it behaves.
"""

import msgspec

from muster.demo import habits
from muster.demo.habits import Habit, luck
from muster.demo.people import VISITOR
from muster.engines.sim.live import Life
from muster.model.charter import Charter
from muster.model.events import Outcome
from muster.model.job import Checkpoint, Gang, Job, Part, Priority, Shape, Together
from muster.model.run import Run
from muster.model.units import GIB, HOUR, MILLI, MINUTE

_CPUS_PER_GPU, _BYTES_PER_GPU = 12, 48 * GIB
_SAVES = Checkpoint(every_seconds=30 * MINUTE, save_seconds=20.0, restore_seconds=60.0)


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """``each_day``: how many come on a usual day. ``hours``: the shortest and the longest usual length."""

    name: str
    team: str
    owners: tuple[str, ...]
    purpose: str | None = None
    gpus: int = 1  # of each part
    milli: int = MILLI  # of a GPU, where it is shared
    parts: int = 1
    together: Together = Together.ANYWHERE
    cpus: int = _CPUS_PER_GPU  # for each GPU, or in all if there is none
    hours: tuple[float, float] = (1.0, 4.0)
    limit_hours: float | None = 8.0
    habit: Habit = habits.TRAINER
    curve: str | None = None  # what it reports, see ``curves``
    success: tuple[str, ...] = ()
    failure: tuple[str, ...] = ()
    budget: str | None = None
    effort: str | None = None
    priority: Priority = Priority.NORMAL
    saves: bool = True
    each_day: float = 0.0
    fails: float = 0.0  # part of them
    members: int = 0  # of an array
    at_once: int | None = None
    command: str = "python train.py"


def gang_of(kind: Kind) -> Gang:
    if not kind.gpus:
        shape = Shape(cpus_milli=kind.cpus * MILLI, memory_bytes=4 * GIB * kind.cpus)
    else:
        whole = kind.gpus * kind.milli / MILLI
        shape = Shape(
            cpus_milli=round(kind.cpus * whole * MILLI),
            memory_bytes=round(_BYTES_PER_GPU * whole),
            gpus=kind.gpus,
            gpu_milli=kind.milli,
        )
    return Gang((Part(shape, kind.parts),), kind.together)


def job_of(kind: Kind, job_id: str, owner: str, at: float) -> Job:
    charter = Charter(
        owner=owner, purpose=kind.purpose, success=kind.success, failure=kind.failure, budget=kind.budget
    )
    return Job(
        job_id,
        gang_of(kind),
        at,
        name=kind.name,
        owner=owner,
        team=kind.team,
        priority=kind.priority,
        time_limit_seconds=None if kind.limit_hours is None else kind.limit_hours * HOUR,
        checkpoint=_SAVES if kind.saves else None,
        charter=charter,
        effort=kind.effort,
        run=Run(argv=tuple(kind.command.split()), cwd=f"/home/{owner}/{kind.name}"),
    )


def life_of(kind: Kind, key: str) -> Life:
    """How long the job with this key works, and how it ends; within its limit."""
    shortest, longest = kind.hours
    seconds = HOUR * (shortest + (longest - shortest) * luck(f"length {key}") ** 2)
    if luck(f"end {key}") >= kind.fails:
        return Life(seconds)
    return Life(max(MINUTE, seconds * luck(f"when {key}")), Outcome.FAILED, 1)


_PASSED = ("val_acc >= 0.92",)
_GIVEN_UP = ("val_acc < 0.5 after 2h", "val_loss stalls for 90m", "loss is nan")

USUAL = (
    Kind(
        name="vit-ablate",
        team="vision",
        owners=("mei", "tomasz", "priya", VISITOR),
        purpose="Which of the four augmentations carries the gain on the night scenes?",
        gpus=2,
        hours=(1.0, 5.0),
        curve="accuracy",
        success=_PASSED,
        failure=_GIVEN_UP,
        each_day=9,
        fails=0.15,
    ),
    Kind(
        name="detect-eval",
        team="vision",
        owners=("ben", "tomasz"),
        purpose="Is the detector still above 0.61 mAP on this week's street images?",
        hours=(0.2, 0.9),
        limit_hours=2.0,
        habit=habits.EVALUATION,
        each_day=9,
        command="python evaluate.py --split street",
    ),
    Kind(
        name="asr-finetune",
        team="speech",
        owners=("aiko", "farid", "kwame"),
        purpose="How much does the Twi corpus lower the word error rate?",
        gpus=4,
        hours=(2.0, 7.0),
        limit_hours=10.0,
        curve="wer",
        success=("wer < 0.08",),
        failure=("wer stalls for 2h", "loss is nan"),
        effort="whisper",
        each_day=2.5,
        fails=0.2,
    ),
    Kind(
        name="rerank",
        team="nlp",
        owners=("dmitri", "hana"),
        purpose="Does the small re-ranker keep recall at ten with a quarter of the latency?",
        gpus=2,
        hours=(0.5, 3.0),
        curve="accuracy",
        success=("val_acc >= 0.88",),
        each_day=7,
        fails=0.12,
    ),
    Kind(
        name="lm-probe",
        team="nlp",
        owners=("oluwaseun", "lucia"),
        purpose="At which layer does the model know the gender of a noun in Yorùbá?",
        hours=(0.5, 2.0),
        limit_hours=4.0,
        habit=habits.EVALUATION,
        priority=Priority.LOW,
        each_day=12,
        fails=0.08,
        command="python probe.py --layers all",
    ),
    Kind(
        name="dock",
        team="bio",
        owners=("chidi", "elif", "mateo"),
        purpose="Which of the 400 ligands is worth a week in the wet lab?",
        hours=(0.5, 2.5),
        limit_hours=4.0,
        habit=habits.HUNGRY,
        each_day=10,
        fails=0.06,
        command="./dock --receptor 6lu7",
    ),
    Kind(
        name="ensemble-member",
        team="climate",
        owners=("rangi", "wanjiru", "jose"),
        purpose="How wide is the spread of the ensemble for a cyclone after five days?",
        gpus=4,
        hours=(2.0, 6.0),
        limit_hours=8.0,
        habit=habits.HUNGRY,
        each_day=3,
        command="./member.sh",
    ),
    Kind(
        name="grasp-sim",
        team="robotics",
        owners=("yuto", "zofia", "leilani"),
        purpose="Can the arm learn to grasp a cup from simulation alone?",
        gpus=2,
        hours=(1.0, 4.0),
        habit=habits.DATA_BOUND,
        curve="reward",
        success=("success_rate >= 0.9",),
        effort="grasp",
        each_day=4,
        fails=0.12,
        command="python rollout.py",
    ),
    Kind(
        name="tokenise",
        team="data",
        owners=("bao", "thandi"),
        purpose="The crawl of this month as tokens, without duplicates.",
        gpus=0,
        cpus=16,
        hours=(0.3, 1.5),
        limit_hours=3.0,
        habit=habits.Habit(0.0, cpus=0.85, disk_bytes=300e6),
        saves=False,
        each_day=8,
        command="python tokenise.py",
    ),
    Kind(
        name="retrain-nightly",
        team="data",
        owners=("sofia",),
        purpose="Retrain the recommender on yesterday's clicks.",
        gpus=4,
        hours=(3.0, 4.0),
        limit_hours=6.0,
        habit=habits.DATA_BOUND,
        each_day=1.2,
        command="./nightly.sh",
    ),
    Kind(
        name="scratch",
        team="ops",
        owners=("sven", "marta"),
        gpus=1,
        milli=250,
        hours=(0.2, 1.0),
        limit_hours=None,
        habit=habits.NOTEBOOK,
        saves=False,
        each_day=3,
        command="bash",
    ),
)
