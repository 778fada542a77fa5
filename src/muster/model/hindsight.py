"""What jobs that have ended held in all, and what of it after an exit would have ended them, as sums.

Of a job that reported nothing neither is known. So there are three amounts, as there are of usage: held,
the part of it that was held by jobs that can be judged, and the part of that which came too late.
"""

import msgspec

from muster.model.resources import Resources


class LookedBack(msgspec.Struct, frozen=True):
    """Of some jobs. Amounts are those of cpus and GPUs times seconds, in whole units."""

    jobs: int = 0
    judged: int = 0  # of these, who has reported something
    late: int = 0  # of those, whom an exit would have ended sooner
    held: Resources = Resources()
    held_by_judged: Resources = Resources()
    held_after: Resources = Resources()

    def __add__(self, other: "LookedBack") -> "LookedBack":
        return LookedBack(
            self.jobs + other.jobs,
            self.judged + other.judged,
            self.late + other.late,
            self.held + other.held,
            self.held_by_judged + other.held_by_judged,
            self.held_after + other.held_after,
        )
