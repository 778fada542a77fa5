"""Requests as a client would send them, and what comes of them."""

from typing import Any

import pytest

from muster.application.build import Built, build
from muster.application.request import Request
from muster.model.errors import BadInput
from muster.model.events import ArraySubmitted
from muster.model.job import Job, Shape

NOW = 1_790_000_000.0  # in September 2026


def built(**given: Any) -> Built:
    if not {"command", "script", "yaml", "application"} & given.keys():
        given["command"] = ("python", "train.py")
    given.setdefault("cwd", "/home/ana")
    return build(
        Request(**given), job_id="7", owner="ana", team="vision", user="ana", environment_key="e1", now=NOW
    )


def members(made: Built) -> list[Job]:
    """The jobs of an array, as the journal will have them."""
    return list(ArraySubmitted(NOW, made.job, made.indices, made.most_at_once, made.sweep).members())


def job(**given: Any) -> Job:
    return built(**given).job


def shape(**given: Any) -> Shape:
    return job(**given).gang.parts[0].shape


def refusal(**given: Any) -> str:
    """The sentence; it is one line, unless it points at a letter, and ends in what to do."""
    with pytest.raises(BadInput) as caught:
        built(**given)
    said = str(caught.value)
    assert "\n" not in said or (said.count("\n") == 2 and said.endswith(" ^"))
    return said
