"""From an action of a plan to an order for the keeper: all that a job finds around it when it starts."""

import socket
from collections.abc import Callable

from muster.engines.local.grants import DEFAULT_PIDS
from muster.engines.local.inventory import Machine
from muster.engines.local.logs import is_safe
from muster.engines.local.scratch import name as scratch_name
from muster.engines.local.trackers import mark, tracker_variables
from muster.engines.local.wire import Message
from muster.home import Home
from muster.model.errors import BadInput
from muster.model.events import Seat
from muster.model.job import Checkpoint, Job
from muster.model.plan import Start
from muster.model.run import Notice, Run

_NVIDIA_MAJOR = 195


def start_order(
    job: Job, action: Start, home: Home, machine: Machine, environment: Callable[[str], dict[str, str]]
) -> Message:
    """The order to start an attempt. Its environment is told by the key under which the keeper knows it."""
    run = run_of(job)
    scratch = _scratch(job, action, home)
    return {
        "do": "start",
        "job": job.id,
        "attempt": action.attempt,
        "argv": [filled(argument, job) for argument in run.argv],
        "script": run.script,
        "is_script": run.script is not None,
        "cwd": run.cwd,
        "umask": run.umask,
        "user": run.user,
        "output": output_of(run, job),
        "log_bytes": run.log_bytes,
        "pids": run.pids or DEFAULT_PIDS,
        "asks_pids": run.pids is not None,
        "cpu_cap": run.cpu_cap,
        "grace_seconds": run.grace_seconds,
        "notice": _notice(run.notice),
        "time_limit_seconds": job.time_limit_seconds,
        "checkpoint": _checkpoint(job.checkpoint),
        "checkpoint_of": job.revives or job.id,
        "scratch": [kept for kept in scratch if kept is not None],
        "environment": run.environment,
        "variables": variables_of(job, action.attempt, home)
        | tracker_of(job, action.attempt, home, environment),
        "parts": _parts(action.seats, scratch, machine),
        "behind": action.behind,
    }


def run_of(job: Job) -> Run:
    run = job.run
    if not is_safe(job.id):
        raise BadInput(f"{job.id!r} can't be the id of a job here: only letters, digits, _ and - are safe")
    if run is None or not (run.argv or run.script is not None):
        raise BadInput(f"job {job.id} has no command to run")
    return run


def filled(text: str, job: Job) -> str:
    """``{name}`` is what this member of a sweep tries."""
    for name, value in job.params:
        text = text.replace("{" + name + "}", value)
    return text


def output_of(run: Run, job: Job) -> str | None:
    """Where the owner wants the log; %j, %A and %a as Slurm has them."""
    if run.output is None:
        return None
    array = job.array
    text = run.output.replace("%j", job.id)
    text = text.replace("%A", array.array if array is not None else job.id)
    return filled(text.replace("%a", str(array.index) if array is not None else "0"), job)


def _notice(notice: Notice | None) -> Message | None:
    return None if notice is None else {"signal": notice.signal, "before_seconds": notice.before_seconds}


def _checkpoint(kept: Checkpoint | None) -> Message | None:
    return (
        None
        if kept is None
        else {
            "on_signal": kept.on_signal,
            "every_seconds": kept.every_seconds,
            "save_seconds": kept.save_seconds,
        }
    )


def variables_of(job: Job, attempt: int, home: Home) -> dict[str, str]:
    """What every part finds in its environment."""
    folder, kept = f"{home.logs}/{job.id}", f"{home.logs}/{job.revives or job.id}"
    variables = {
        "MUSTER_JOB_ID": job.id,
        "MUSTER_ATTEMPT": str(attempt),
        "MUSTER_HOME": str(home.path),
        "MUSTER_CHECKPOINT_DIR": f"{kept}/checkpoint",
        "MUSTER_STOP_FILE": f"{folder}/{attempt}.stop",
        "SLURM_JOB_ID": job.id,
    }
    if job.array is not None:
        variables["MUSTER_ARRAY_ID"] = variables["SLURM_ARRAY_JOB_ID"] = job.array.array
        variables["MUSTER_ARRAY_INDEX"] = variables["SLURM_ARRAY_TASK_ID"] = str(job.array.index)
    return variables | {f"MUSTER_PARAM_{name}": value for name, value in job.params}


def tracker_of(
    job: Job, attempt: int, home: Home, environment: Callable[[str], dict[str, str]]
) -> dict[str, str]:
    """To add to what the user says there, that is looked up: of the few whose metrics are with a tracker."""
    if job.metrics is None or job.metrics.how != "mlflow" or job.run is None:
        return {}
    return tracker_variables(job.id, attempt, mark(home), job.metrics, environment(job.run.environment))


Scratch = tuple[str, int]  # where, and how much it may hold


def _scratch(job: Job, action: Start, home: Home) -> list[Scratch | None]:
    """Of each part that asks for disk, a folder of its own."""
    count, folder = len(action.seats), f"{home.logs}/{job.id}"
    asked = enumerate(seat.shape.disk_bytes for seat in action.seats)
    return [
        (f"{folder}/{scratch_name(action.attempt, i, count)}", most) if most else None for i, most in asked
    ]


def _temporary(scratch: Scratch | None) -> dict[str, str]:
    return {} if scratch is None else {"MUSTER_SCRATCH_DIR": scratch[0], "TMPDIR": scratch[0]}


def _parts(seats: tuple[Seat, ...], scratch: list[Scratch | None], machine: Machine) -> list[Message]:
    """On one machine the parts are its processes: node rank 0, and the local rank is the rank."""
    ranks: list[dict[str, str]] = [{}]
    if len(seats) > 1:
        shared = {"WORLD_SIZE": str(len(seats)), "NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1"}
        shared["MASTER_PORT"] = str(_free_port())
        ranks = [shared | {"RANK": str(i), "LOCAL_RANK": str(i)} for i in range(len(seats))]
    return [
        {
            "environment": rank | _visible(seat, machine) | _temporary(folder),
            "cpus_milli": seat.shape.cpus_milli,
            "memory_bytes": seat.shape.memory_bytes,
            "denied_devices": _denied(seat, machine),
        }
        for seat, rank, folder in zip(seats, ranks, scratch, strict=True)
    ]


def _visible(seat: Seat, machine: Machine) -> dict[str, str]:
    """Which GPUs a program sees, by their numbers here; none is said too, where there are some."""
    if not machine.node.devices:
        return {}
    listed = ",".join(str(device) for device in seat.devices)
    return {"CUDA_VISIBLE_DEVICES": listed, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def _denied(seat: Seat, machine: Machine) -> list[str]:
    """The files of GPUs that it was not granted, for the devices controller."""
    others = [minor for index, minor in enumerate(machine.gpu_minors) if index not in seat.devices]
    return [f"c {_NVIDIA_MAJOR}:{minor}" for minor in others if minor is not None]


def _free_port() -> int:
    """For the members of a gang to meet at: free now, which is as much as can be known."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
