"""What a job finds in its environment so that its runs on a tracking server can be told to be its own.

MLflow's client puts the tags that ``MLFLOW_RUN_CONTEXT`` holds onto every run that it begins. Numbers of
jobs are used by every Muster; hence a mark of this one is among the tags.
"""

import contextlib
import json
import os
import socket
import zlib
from collections.abc import Mapping

from muster.home import Home
from muster.model.job import JobId
from muster.model.run import Metrics

URI, CONTEXT = "MLFLOW_TRACKING_URI", "MLFLOW_RUN_CONTEXT"


def mark(home: Home) -> str:
    """Of this machine and this home, and no other."""
    folder = zlib.crc32(os.fsencode(home.path.resolve()))
    return f"{socket.gethostname()}-{folder:08x}"


def tracker_variables(
    job: JobId, attempt: int, server: str, metrics: Metrics, given: Mapping[str, str]
) -> dict[str, str]:
    """For a job whose metrics come from MLflow. ``given``: what the user has set, which stays."""
    own = {"muster.job": job, "muster.attempt": str(attempt), "muster.server": server}
    variables = {CONTEXT: json.dumps(_tags(given.get(CONTEXT, "")) | own)}
    if metrics.url and not given.get(URI):
        variables[URI] = metrics.url
    return variables


def _tags(context: str) -> dict[str, object]:
    """The user's own; what MLflow itself could not read is none."""
    with contextlib.suppress(ValueError, RecursionError):
        tags = json.loads(context)
        if isinstance(tags, dict):
            return tags
    return {}
