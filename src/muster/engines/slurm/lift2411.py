"""From 24.11's shape to 26.05's: the path of the output has a key of its own, beside the one with
patterns.
"""

from muster.engines.slurm.wire import WireJob


def lift_job(job: WireJob) -> None:
    if job.stdout_expanded is None:
        job.stdout_expanded = job.standard_output
