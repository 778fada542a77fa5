"""Where a job tells how it is doing, as people write it: ``pattern:epoch {step} loss {loss}``."""

from collections.abc import Mapping
from typing import get_args
from urllib.parse import urlsplit

from muster.application.names import nearest
from muster.model.errors import BadInput
from muster.model.run import How, Metrics
from muster.model.template import Template

SOURCES: tuple[How, ...] = get_args(How)
# What each has to be told besides: the field, and how it is written.
_BESIDES = {
    "pattern": ("pattern", "pattern:epoch {step} loss {loss}"),
    "tensorboard": ("path", "tensorboard:runs/"),
    "mlflow": ("url", "mlflow:http://localhost:5000"),
}
_MOST_LETTERS = 2000


def parse_metrics(text: str) -> Metrics:
    """``json-lines``, ``report``, ``pattern:…``, ``tensorboard:FOLDER`` or ``mlflow:URL``."""
    source, colon, rest = text.strip().partition(":")
    how = _how(source.strip())
    field, _ = _BESIDES.get(how, ("", ""))
    if colon and not field:
        raise BadInput(f"{how} stands alone; leave out what follows it, {rest[:80]!r}")
    return made({"from": how, field: rest.strip()} if field else {"from": how})


def made(said: Mapping[str, str]) -> Metrics:
    """From a table with ``from`` and what belongs to it."""
    given = {key: value.strip() for key, value in said.items() if key != "from"}
    how = _how(said["from"].strip()) if "from" in said else _meant(given)
    field, example = _BESIDES.get(how, ("", ""))
    for key in given:
        if key != field:
            raise BadInput(f"{key} does not go with metrics from {how}; leave one of them out")
    value = given.get(field, "")
    if not field:
        return Metrics(how)
    if not value:
        raise BadInput(f"{how} needs its {field}; write it like {example}")
    _CHECKS[how](value)
    return Metrics(how, **{field: value})


def _meant(given: Mapping[str, str]) -> How:
    """What is said alone says where from."""
    found = [how for how, (field, _) in _BESIDES.items() if field in given]
    if len(found) != 1:
        raise BadInput(f"metrics come from one place; say which, like 'from: {SOURCES[2]}'")
    return _how(found[0])


def _how(source: str) -> How:
    for known in SOURCES:
        if known == source:
            return known
    raise BadInput(f"unknown source of metrics {source[:80]!r}; {nearest(source, list(SOURCES))}")


def _check_path(path: str) -> None:
    if len(path) > _MOST_LETTERS or not path.isprintable():
        raise BadInput("the folder of TensorBoard's files must be a printable path, and not too long")


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and len(url) <= _MOST_LETTERS
    except ValueError:
        is_one = False
    if not is_one or not url.isprintable() or " " in url:
        raise BadInput(
            f"{url[:80]!r} is not where an MLflow server answers; write it like http://localhost:5000"
        )


_CHECKS = {"pattern": Template, "tensorboard": _check_path, "mlflow": _check_url}
