"""One quarter with all that is assumed about it, played with stewardship or without."""

import msgspec

from bench.quarter_charters import charter_of
from bench.quarter_exits import Reports
from bench.quarter_lives import USUAL, Nature
from bench.quarter_people import ANSWERS
from bench.quarter_review import Reviews
from bench.quarter_run import Outcome, Stage
from bench.quarter_steward import Stewarding
from bench.quarter_terms import Terms
from bench.quarter_watch import Watch
from bench.quarter_world import LOAD, World
from muster.steward.review.rules import ReviewRules
from muster.steward.rules import Response, Rules

EXITS = 0.5  # part of the jobs whose owners write how they end; nobody has measured what people will do
# As the rules are for one machine, but that what is idle or stuck is stopped in the end.
STOPPING = Rules(on_idle=Response("stop"), on_stuck=Response("stop"))


class Assumed(msgspec.Struct, frozen=True):
    """What is varied."""

    exits: float = EXITS
    answers: float = ANSWERS
    rules: Rules = STOPPING
    review: ReviewRules = ReviewRules()
    load: float = LOAD
    nature: Nature = USUAL


def play(world: World, assumed: Assumed) -> tuple[Outcome, Stewarding]:
    """With stewardship."""
    stage = Stage(chartered(world, assumed.exits))
    steward = Stewarding(stage, assumed.answers)
    steward.steps = [
        Reports(steward).look,
        Watch(steward, assumed.rules).look,
        Terms(steward).look,
        Reviews(steward, assumed.review).look,
    ]
    stage.tended.steward = steward
    return stage.run(), steward


def chartered(world: World, share: float) -> World:
    """The same world, in which so many have written down how their work ends."""
    replace = msgspec.structs.replace
    works = {
        job_id: replace(work, job=replace(work.job, charter=charter_of(work, share, world.seed)))
        for job_id, work in world.works.items()
    }
    return replace(world, works=works)
