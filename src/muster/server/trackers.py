"""Reports that a job tells elsewhere: in a folder for TensorBoard, or to a tracking server of MLflow."""

import os
import pwd
from collections.abc import Callable, Mapping

from muster.engines.local.trackers import mark
from muster.home import Home
from muster.model.job import Job
from muster.model.run import How
from muster.monitor.reports.mlflow import Mlflow
from muster.monitor.reports.report import Source
from muster.monitor.reports.sources import OUTPUT, Maker, Teller
from muster.monitor.reports.tensorboard import TensorBoard
from muster.monitor.reports.tracker import address

Environment = Callable[[str], Mapping[str, str]]  # that was kept under a key
Hosts = Callable[[], tuple[str, ...]]  # that the configuration names now


def makers(home: Home, environment: Environment, hosts: Hosts) -> dict[How, Maker]:
    """Of all sources that there are."""
    here = mark(home)

    def tensorboard(teller: Teller) -> Source:
        job = teller.job
        assert job.metrics is not None
        position, since = teller.position, teller.since
        return TensorBoard(job.id, teller.attempt, job.metrics.path, position, uid=_uid_of(job), since=since)

    def mlflow(teller: Teller) -> Source:
        job = teller.job
        assert job.metrics is not None
        assert job.run is not None
        return Mlflow(
            job.id,
            teller.attempt,
            job.metrics.url,
            teller.position,
            since=teller.since,
            server=here,
            environment=environment(job.run.environment),
            hosts=hosts(),
        )

    return {**OUTPUT, "tensorboard": tensorboard, "mlflow": mlflow}


def check_tracker(job: Job, hosts: tuple[str, ...]) -> None:
    """Refuses a tracking server that Muster may not ask."""
    if job.metrics is not None and job.metrics.how == "mlflow":
        address(job.metrics.url, hosts)


def _uid_of(job: Job) -> int:
    """As whom it runs: whose files it may point at."""
    user = "" if job.run is None else job.run.user
    return pwd.getpwnam(user).pw_uid if user else os.geteuid()
