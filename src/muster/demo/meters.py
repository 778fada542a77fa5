"""Meters of the simulated site: what each attempt and each device shows at a moment, by its habit."""

import time
from collections.abc import Callable, Mapping, Sequence

from muster.demo.habits import Habit, busy_of, counted, luck, places
from muster.engines.sim import LiveEngine, Seated
from muster.model.job import Job
from muster.model.node import Health, Node
from muster.model.units import GIB, MILLI
from muster.model.usage import ForeignProcess, GpuReading, GpuShown, NodeReading, Reading
from muster.monitor.meters.gather import Attended, Readings

METRIC = "simulated SM activity"
_GPU_BYTES = 48 * GIB
_IDLE_WATTS, _FULL_WATTS = 32.0, 290.0
_COOL_CELSIUS, _HOT_CELSIUS = 31.0, 72.0
_PROCESSES = 9

HabitOf = Callable[[Job], Habit]
Where = tuple[str, int]  # a node and one of its devices


class SimMeters:
    """Reads what a live simulator runs. What is silent stays so: its figures are None."""

    def __init__(self, engine: LiveEngine, habit_of: HabitOf, foreign: Where | None = None) -> None:
        self._engine, self._habit_of, self._foreign = engine, habit_of, foreign

    @property
    def silent(self) -> dict[str, float]:
        """All of the site's meters answer; that some attempts show nothing is another matter."""
        return {}

    def read(self, attended: Sequence[Attended]) -> Readings:
        now, since_boot = self._engine.now(), time.clock_gettime(time.CLOCK_BOOTTIME)
        seated = {(one.job.id, one.attempt): one for one in self._engine.seated()}
        found = ((one, seated.get((one.job, one.attempt))) for one in attended)
        readings = tuple(self._reading(one, who, now, since_boot) for one, who in found if who is not None)
        nodes = self._read_nodes(list(seated.values()), now)
        first = next(iter(nodes.values()), NodeReading(at=now))
        return Readings(readings, first, nodes)

    def _reading(self, one: Attended, who: Seated, now: float, since_boot: float) -> Reading:
        habit = self._habit_of(who.job)
        if habit.is_silent:
            return Reading(job=one.job, attempt=one.attempt, at=now, since_boot_seconds=since_boot)
        ran = now - who.placed_at
        cpus = sum(seat.shape.cpus_milli for seat in who.seats) / MILLI
        memory = sum(seat.shape.memory_bytes for seat in who.seats) * habit.memory
        pace = 0.0 if who.is_still else 1.0
        return Reading(
            job=one.job,
            attempt=one.attempt,
            at=now,
            since_boot_seconds=since_boot,
            cpu_seconds=counted(cpus * habit.cpus * pace, ran, one.job),
            throttled_seconds=0.0,
            memory_bytes=round(memory * (1 - (0.05 if habit.busy else 0.0) * luck(f"{one.job}:{now // 60}"))),
            memory_peak_bytes=round(memory * 1.04),
            processes=_PROCESSES * len(who.seats),
            read_bytes=round(counted(habit.disk_bytes * pace, ran, one.job)),
            written_bytes=round(counted(habit.disk_bytes * pace / 20, ran, one.job)),
            gpus=self._shown(habit, who, one.devices, now),
        )

    def _shown(self, habit: Habit, who: Seated, devices: tuple[int, ...], now: float) -> tuple[GpuShown, ...]:
        taken = round(habit.gpu_memory * _GPU_BYTES * who.seats[0].device_milli / MILLI)
        busy = self._busy(habit, who, len(devices), now)
        return tuple(GpuShown(device, one, taken) for device, one in zip(devices, busy, strict=True))

    def _busy(self, habit: Habit, who: Seated, count: int, now: float) -> list[float]:
        return [0.0] * count if who.is_still else busy_of(habit, who.job.id, count, now)

    # --- Nodes --------------------------------------------------------------------------------------

    def _read_nodes(self, seated: list[Seated], now: float) -> dict[str, NodeReading]:
        """Of those that answer: who is down says nothing."""
        busy, memory = self._devices(seated, now)
        up = [node for node in self._engine.nodes() if node.health is not Health.DOWN]
        return {node.name: self._node(node, busy, memory, now) for node in up}

    def _devices(
        self, seated: list[Seated], now: float
    ) -> tuple[dict[Where, float | None], dict[Where, float]]:
        """How busy each device is that somebody holds, and what of its memory is taken."""
        busy: dict[Where, float | None] = {}
        memory: dict[Where, float] = {}
        for who in seated:
            habit, share = self._habit_of(who.job), who.seats[0].device_milli / MILLI
            found = places(who.seats)
            for where, one in zip(found, self._busy(habit, who, len(found), now), strict=True):
                shown = one * share
                before = busy.get(where, 0.0)
                busy[where] = None if habit.is_silent or before is None else before + shown
                memory[where] = memory.get(where, 0.0) + habit.gpu_memory * _GPU_BYTES * share
        return busy, memory

    def _node(
        self,
        node: Node,
        busy: Mapping[Where, float | None],
        memory: Mapping[Where, float],
        now: float,
    ) -> NodeReading:
        gpus = tuple(
            self._gpu((node.name, number), device.model, busy, memory)
            for number, device in enumerate(node.devices)
        )
        return NodeReading(at=now, memory_total_bytes=node.memory_bytes, gpus=gpus)

    def _gpu(
        self, where: Where, model: str, busy: Mapping[Where, float | None], memory: Mapping[Where, float]
    ) -> GpuReading:
        shown = busy.get(where, 0.0)
        foreign: tuple[ForeignProcess, ...] = ()
        if where == self._foreign:
            foreign = (ForeignProcess(4711, "guest", "python old_server.py", 6 * GIB),)
        level = shown or 0.0
        return GpuReading(
            index=where[1],
            uuid=f"SIM-{where[0]}-{where[1]}",
            name=model,
            metric=METRIC,
            busy=shown,
            memory_used_bytes=None if shown is None else round(memory.get(where, 0.0)),
            memory_total_bytes=_GPU_BYTES,
            power_watts=None if shown is None else round(_IDLE_WATTS + level * (_FULL_WATTS - _IDLE_WATTS)),
            temperature_celsius=None
            if shown is None
            else round(_COOL_CELSIUS + level * (_HOT_CELSIUS - _COOL_CELSIUS)),
            foreign=foreign,
        )
