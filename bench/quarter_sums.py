"""The public sums that the simulated quarter is calibrated to: how jobs of three clusters ended, by number
and by GPU-time, how long and how large they were, and how many of all GPU samples show no use at all.

They are the AcmeTrace authors' own (``cluster_summary.csv`` and the quantiles of GPU utilisation). Of
Helios no utilisation is published; there the mean of the other two stands in.
"""

import enum
from pathlib import Path

import msgspec

from muster.model.errors import BadInput
from muster.traces.lines import cells, load

SUMMARY = "cluster_summary.csv"
CLUSTERS = ("philly", "helios", "seren")  # the first is the base case
_UTILISED = ("seren", "philly")
_COLUMNS = (
    *("id", "complete_rate_gpu", "cancel_rate_gpu", "fail_rate_gpu"),
    *("complete_gpu_time", "cancel_gpu_time", "fail_gpu_time"),
    *("gpu_job_num", "avg_run_time_gpu", "med_run_time_gpu", "avg_gpu_num", "avg_que_time_gpu"),
)


class Ending(enum.StrEnum):
    """How a job ends if nobody but its owner looks after it."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Sums(msgspec.Struct, frozen=True):
    """What is published of one cluster."""

    cluster: str
    jobs: dict[Ending, float]  # parts of 1
    gpu_time: dict[Ending, float]  # parts of 1
    gpu_seconds_each: dict[Ending, float]  # on average, of a job that ended so
    run_mean_seconds: float
    run_median_seconds: float
    gpus_mean: float
    queue_mean_seconds: float
    zero_samples: float  # part of all GPU samples, of unallocated GPUs too, in which nothing was used


def files(folder: Path) -> dict[str, Path]:
    """The summary, once for each cluster, if it is there."""
    path = folder / SUMMARY
    return dict.fromkeys(CLUSTERS, path) if path.is_file() else {}


def read(path: Path, cluster: str) -> Sums:
    for _, found in cells(load(str(path)), _COLUMNS):
        row = dict(zip(_COLUMNS, found, strict=True))
        if row["id"].lower() == cluster:
            return _sums(row, cluster, _zero_samples(path.parent, cluster))
    raise BadInput(f"{path} has no row for {cluster}; expected one in its column id")


def _sums(row: dict[str, str], cluster: str, zero: float) -> Sums:
    count = float(row["gpu_job_num"])
    rates = _by_ending(row, "{}_rate_gpu")
    seconds = _by_ending(row, "{}_gpu_time")
    jobs = {ending: rate / sum(rates.values()) for ending, rate in rates.items()}
    return Sums(
        cluster,
        jobs=jobs,
        gpu_time={ending: each / sum(seconds.values()) for ending, each in seconds.items()},
        gpu_seconds_each={ending: seconds[ending] / (count * jobs[ending]) for ending in Ending},
        run_mean_seconds=float(row["avg_run_time_gpu"]),
        run_median_seconds=float(row["med_run_time_gpu"]),
        gpus_mean=float(row["avg_gpu_num"]),
        queue_mean_seconds=float(row["avg_que_time_gpu"]),
        zero_samples=zero,
    )


def _by_ending(row: dict[str, str], column: str) -> dict[Ending, float]:
    words = zip(Ending, ("complete", "cancel", "fail"), strict=True)
    return {ending: float(row[column.format(word)]) for ending, word in words}


def _zero_samples(folder: Path, cluster: str) -> float:
    known = [cluster] if cluster in _UTILISED else list(_UTILISED)
    return sum(_zero_of(folder / f"util_gpu_{name}_quantiles.csv") for name in known) / len(known)


def _zero_of(path: Path) -> float:
    """The highest quantile at which utilisation is still zero."""
    rows = cells(load(str(path)), ("quantile_pct", "gpu_util"))
    return max((float(quantile) for _, (quantile, used) in rows if float(used) <= 0), default=0.0) / 100
