"""Microsoft's Philly trace as published with Pollux and Sia: one line per job, no ids, no nodes.

A job's id is its line in the file. ``cluster`` is the virtual cluster, which is a team's share.
"""

from muster.model.job import Job
from muster.traces.gangs import GPUS_PER_NODE, whole_gpus
from muster.traces.lines import (
    MOST_GPUS,
    MOST_SECONDS,
    Cells,
    File,
    cells,
    from_first,
    instant,
    load,
    number,
    trace,
    whole,
)
from muster.traces.trace import Trace, TraceJob

COLUMNS = ("timestamp", "duration", "num_gpus")


def read(path: str, gpus_per_node: int = GPUS_PER_NODE) -> Trace:
    return parse(load(path), gpus_per_node)


def parse(file: File, gpus_per_node: int = GPUS_PER_NODE) -> Trace:
    def make(line: int, row: Cells) -> TraceJob:
        timestamp, duration, gpus, cluster = row
        job = Job(
            id=str(line),
            gang=whole_gpus(whole(gpus, "num_gpus", MOST_GPUS), gpus_per_node),
            submitted_at=instant(timestamp, "timestamp"),
            team=cluster,
        )
        return TraceJob(job, number(duration, "duration", MOST_SECONDS))

    return from_first(trace(file, cells(file, COLUMNS, ("cluster",)), make))
