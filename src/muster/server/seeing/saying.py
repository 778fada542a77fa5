"""Where a job is, in a sentence."""

from collections.abc import Sequence

from muster.layout.ranges import fold, fold_numbers
from muster.layout.words import printable
from muster.model.units import MILLI, show_count, show_milli
from muster.server.answers_map import PlaceView


def sentence(head: str, places: Sequence[PlaceView]) -> str:
    """``513 finetune-8b runs on GPUs 0-3 (A40) of gpub037, rack R04 unit 12, row A, as 9 processes.``"""
    nodes = printable(fold([place.node for place in places]))
    return f"{head} on {_what(places)} of {nodes}{_stands(places)}{_as_processes(places)}."


def _what(places: Sequence[PlaceView]) -> str:
    gpus = [gpu for place in places for gpu in place.gpus]
    if not gpus:
        cpus_milli = sum(round(place.cpus * MILLI) for place in places)
        return f"{show_milli(cpus_milli)} cpu{'s' * (cpus_milli != MILLI)}"
    models = ", ".join(dict.fromkeys(printable(gpu.model) for gpu in gpus if gpu.model))
    of_model = f" ({models})" if models else ""
    if len(places) > 1:
        return f"{show_count(len(gpus), 'GPU')}{of_model}"
    part = f"{show_milli(round(gpus[0].held * MILLI))} of " if len(gpus) == 1 and gpus[0].held < 1 else ""
    return f"{part}{numbered([gpu.number for gpu in gpus])}{of_model}"


def numbered(gpus: Sequence[int]) -> str:
    return f"GPU{'s' * (len(gpus) > 1)} {fold_numbers(gpus)}"


def _stands(places: Sequence[PlaceView]) -> str:
    """Of one node where exactly; of several, the racks."""
    racks = list(dict.fromkeys(place.rack for place in places if place.rack is not None))
    if not racks:
        return ""
    if len(places) > 1:
        return f", rack{'s' * (len(racks) > 1)} {printable(fold(racks))}"
    (place,) = places
    said = [f"rack {place.rack}" + (f" unit {place.at_u}" if place.at_u is not None else "")]
    said += [place.room] if place.room else []
    said += [f"row {place.row}"] if place.row else []
    return "".join(f", {printable(one)}" for one in said)


def _as_processes(places: Sequence[PlaceView]) -> str:
    if any(place.processes is None for place in places):
        return "; its processes are not known"
    count = sum(len(place.processes or ()) for place in places)
    return f", as {count} process{'es' * (count != 1)}"
