"""Usage as columns, and back."""

from array import array
from typing import Any

import msgspec

from muster.model.events import Outcome
from muster.model.ledger import Booked, DeviceHeld, Entry, GpuSpent, Spent, usage_of
from muster.model.resources import NOTHING, Resources
from muster.model.rollups import FLOATS, packed, unpacked
from muster.model.units import MIB
from muster.model.usage import Usage

Values = dict[str, Any]

_OUTCOMES: dict[str | None, Outcome | None] = {outcome.value: outcome for outcome in Outcome}
_OUTCOMES[None] = None
_encode = msgspec.msgpack.Encoder().encode
_decode_gpus = msgspec.msgpack.Decoder(tuple[GpuSpent, ...]).decode
_decode_devices = msgspec.msgpack.Decoder(tuple[tuple[DeviceHeld, ...], tuple[GpuSpent, ...]]).decode


class _Rest(msgspec.Struct, frozen=True, array_like=True):
    """What nobody asks the database for."""

    suspended_at: float | None
    resumed_at: float | None
    suspended_seconds: float
    counted_until: float | None
    cpu_levels: tuple[tuple[int, float], ...]


# Of an attempt that is over: what sums over many are made of.
SUMS = (
    "held_seconds",
    "measured_seconds",
    "cpus_held",
    "cpus_measured",
    "cpus_used",
    "memory_held_mib",
    "memory_held_rest",
    "memory_measured_mib",
    "memory_measured_rest",
    "memory_used_mib",
    "memory_used_rest",
    "gpus_held",
    "gpus_measured",
    "gpus_used",
    "disk_held_mib",
    "disk_held_rest",
)
_decode_rest = msgspec.msgpack.Decoder(_Rest).decode


def rollup_values(booked: Booked) -> Values:
    rollup, spent = booked.rollup, booked.spent
    return {
        "job": rollup.job,
        "attempt": rollup.attempt,
        "start": int(rollup.start),
        "measured_seconds": spent.seconds,
        "cpus_measured": spent.cpus_measured,
        "cpus_used": spent.cpus_used,
        **_split("memory_measured", spent.memory_measured),
        **_split("memory_used", spent.memory_used),
        "gpus": _encode(spent.gpus) if spent.gpus else None,
        "figures": packed(rollup).tobytes(),
    }


def booked_from(row: Any) -> Booked:
    figures = array(FLOATS)
    figures.frombytes(row.figures)
    return Booked(unpacked(row.job, row.attempt, float(row.start), figures), spent_from(row))


def spent_from(row: Any) -> Spent:
    """What a row of a minute or an hour adds to the ledger."""
    return Spent(
        row.measured_seconds,
        row.cpus_measured,
        row.cpus_used,
        _joined(row.memory_measured_mib, row.memory_measured_rest),
        _joined(row.memory_used_mib, row.memory_used_rest),
        () if row.gpus is None else _decode_gpus(row.gpus),
    )


def _split(name: str, amount: int) -> Values:
    mib, rest = divmod(amount, MIB)
    return {f"{name}_mib": mib, f"{name}_rest": rest}


def _joined(mib: int, rest: int) -> int:
    return mib * MIB + rest


def _held_in_all(entry: Entry) -> tuple[Resources, float]:
    usage = Usage()
    if entry.ended_at is not None:
        usage = usage_of(entry, entry.spent, entry.placed_at, entry.ended_at)
    return usage.held, usage.held_seconds


def usage_from(row: Any) -> Usage:
    """From sums over many entries. To a database, a sum of whole numbers may be another kind of number."""
    return Usage(
        Resources(
            int(row.cpus_held),
            _joined(int(row.memory_held_mib), int(row.memory_held_rest)),
            int(row.gpus_held),
            _joined(int(row.disk_held_mib), int(row.disk_held_rest)),
        ),
        Resources(
            int(row.cpus_measured),
            _joined(int(row.memory_measured_mib), int(row.memory_measured_rest)),
            int(row.gpus_measured),
        ),
        Resources(
            int(row.cpus_used),
            _joined(int(row.memory_used_mib), int(row.memory_used_rest)),
            int(row.gpus_used),
        ),
        row.held_seconds,
        row.measured_seconds,
    )


def entry_values(entry: Entry) -> Values:
    spent, holds = entry.spent, entry.holds
    measured, used = spent.measured, spent.used
    held, seconds = _held_in_all(entry)
    levels = (entry.counted_until, entry.cpu_levels)
    rest = _Rest(entry.suspended_at, entry.resumed_at, entry.suspended_seconds, *levels)
    return {
        "job": entry.job,
        "attempt": entry.attempt,
        "owner": entry.owner,
        "team": entry.team,
        "effort": entry.effort,
        "name": entry.name,
        "kind": entry.kind,
        "placed_at": entry.placed_at,
        "started_at": entry.started_at,
        "ended_at": entry.ended_at,
        "outcome": None if entry.outcome is None else str(entry.outcome),
        "run_seconds": entry.run_seconds,
        "cpus_milli": holds.cpus_milli,
        "memory_bytes": holds.memory_bytes,
        "gpus_milli": holds.gpus_milli,
        "disk_bytes": holds.disk_bytes,
        "held_seconds": seconds,
        "cpus_held": held.cpus_milli,
        **_split("memory_held", held.memory_bytes),
        "gpus_held": held.gpus_milli,
        **_split("disk_held", held.disk_bytes),
        "measured_seconds": spent.seconds,
        "cpus_measured": measured.cpus_milli,
        "cpus_used": used.cpus_milli,
        **_split("memory_measured", measured.memory_bytes),
        **_split("memory_used", used.memory_bytes),
        "gpus_measured": measured.gpus_milli,
        "gpus_used": used.gpus_milli,
        "cpus_mean": entry.cpus_mean,
        "cpus_p95": entry.cpus_p95,
        "cpus_most": entry.cpus_most,
        "memory_most_bytes": entry.memory_most_bytes,
        "memory_peak_bytes": entry.memory_peak_bytes,
        "gpu_memory_most_bytes": entry.gpu_memory_most_bytes,
        "devices": _encode((entry.devices, spent.gpus)) if entry.devices else None,
        "rest": _encode(rest),
    }


def gpus_from(row: Any) -> Entry:
    """An entry with its devices and its times alone."""
    devices, gpus = _decode_devices(row.devices)
    return Entry(
        job="",
        attempt=0,
        owner="",
        team="",
        holds=NOTHING,
        devices=devices,
        placed_at=row.placed_at,
        ended_at=row.ended_at,
        spent=Spent(gpus=gpus),
    )


def entry_from(row: Any) -> Entry:
    devices, gpus = ((), ()) if row.devices is None else _decode_devices(row.devices)
    rest = _decode_rest(row.rest)
    return Entry(
        job=row.job,
        attempt=row.attempt,
        owner=row.owner,
        team=row.team,
        effort=row.effort,
        name=row.name,
        kind=row.kind,
        holds=Resources(row.cpus_milli, row.memory_bytes, row.gpus_milli, row.disk_bytes),
        devices=devices,
        placed_at=row.placed_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        outcome=_OUTCOMES[row.outcome],
        suspended_at=rest.suspended_at,
        resumed_at=rest.resumed_at,
        suspended_seconds=rest.suspended_seconds,
        spent=Spent(
            row.measured_seconds,
            row.cpus_measured,
            row.cpus_used,
            _joined(row.memory_measured_mib, row.memory_measured_rest),
            _joined(row.memory_used_mib, row.memory_used_rest),
            gpus,
        ),
        counted_until=rest.counted_until,
        memory_most_bytes=row.memory_most_bytes,
        memory_peak_bytes=row.memory_peak_bytes,
        gpu_memory_most_bytes=row.gpu_memory_most_bytes,
        cpus_most=row.cpus_most,
        cpu_levels=rest.cpu_levels,
    )
