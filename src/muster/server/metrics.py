"""What ``/metrics`` tells: every metric, its unit, its labels, and what it means.

Base units throughout, and the unit last in the name. No job's id is a label: there would be no end of them.
Where NVIDIA's DCGM has a field for the same, the help names it, as that is what people know.
"""

from muster.server.prometheus import Metric


def _gauge(name: str, says: str, *labels: str) -> Metric:
    return Metric(f"muster_{name}", "gauge", says, labels)


def _counter(name: str, says: str, *labels: str) -> Metric:
    return Metric(f"muster_{name}_total", "counter", says, labels)


# --- The server -----------------------------------------------------------------------------------------

BUILD = _gauge("build_info", "Always 1; the labels tell which Muster this is.", "version", "python")
STARTED = _gauge("start_time_seconds", "When the server started, since the epoch.")
CYCLES = _counter("cycles", "Runs of the scheduler since the server started.")
CYCLE_SECONDS = _counter("cycle_duration_seconds", "Time that these took in all.")
LAST_CYCLE = _gauge("cycle_last_duration_seconds", "Time that the last of these took.")
JOURNAL_LAG = _gauge(
    "journal_lag_seconds",
    "For how long the oldest parcel of events has waited to become durable; 0: none.",
)
JOURNAL_FAILS = _gauge("journal_failing", "1 while the journal can't be written, as on a full disk; else 0.")
ESTIMATES = _gauge("estimate_checked_jobs", "Start estimates that could be compared with the start lately.")
ESTIMATE_ERROR = _gauge(
    "estimate_error_seconds", "By how much these were off at the median, from the middle of the range told."
)
ESTIMATE_WITHIN = _gauge("estimate_within_ratio", "Part of these jobs that started within the range told.")

# --- Jobs -----------------------------------------------------------------------------------------------

JOBS = _gauge("jobs", "Jobs that have not ended, by state.", "team", "state")
ENDED = _counter("jobs_ended", "Jobs that have ended, by outcome: ever, across restarts.", "team", "outcome")
QUEUE = _gauge("queue_jobs", "Jobs that wait for room or their turn, and for nothing else.", "team")
OLDEST = _gauge(
    "queue_oldest_wait_seconds", "How long the first of these has waited; 0: nobody does.", "team"
)
FINDINGS = _gauge(
    "findings",
    "What the steward finds of running jobs now: idle, stuck, or too large on a shared GPU.",
    "kind",
)

# --- Held and used, now ---------------------------------------------------------------------------------

HELD_CPUS = _gauge("held_cpus", "Cpus granted to jobs that have seats.", "team")
HELD_MEMORY = _gauge("held_memory_bytes", "Memory granted to jobs that have seats.", "team")
HELD_GPUS = _gauge("held_gpus", "GPUs granted to jobs that have seats; shares count as such.", "team")
MEASURED_CPUS = _gauge("measured_cpus", "The part of muster_held_cpus whose use is known.", "team")
MEASURED_MEMORY = _gauge(
    "measured_memory_bytes", "The part of muster_held_memory_bytes whose use is known.", "team"
)
MEASURED_GPUS = _gauge("measured_gpus", "The part of muster_held_gpus whose use is known.", "team")
USED_CPUS = _gauge(
    "used_cpus", "Cpus busy with jobs, of what is measured, between the last two looks.", "team"
)
USED_MEMORY = _gauge(
    "used_memory_bytes",
    "Memory that jobs have, of what is measured, without what the kernel could take back at once.",
    "team",
)
USED_GPUS = _gauge(
    "used_gpus", "GPUs busy with jobs, of what is measured: muster_gpu_busy_ratio times what is held.", "team"
)

# --- Held and used, ever: from the ledger, across restarts ----------------------------------------------

HELD_CPU_SECONDS = _counter("held_cpu_seconds", "Cpus held, times seconds.", "team")
HELD_BYTE_SECONDS = _counter("held_memory_byte_seconds", "Bytes of memory held, times seconds.", "team")
HELD_GPU_SECONDS = _counter("held_gpu_seconds", "GPUs held, times seconds.", "team")
HELD_SECONDS = _counter("held_seconds", "Time for which attempts had their seats.", "team")
MEASURED_CPU_SECONDS = _counter(
    "measured_cpu_seconds", "The part of muster_held_cpu_seconds_total whose use was measured.", "team"
)
MEASURED_BYTE_SECONDS = _counter(
    "measured_memory_byte_seconds",
    "The part of muster_held_memory_byte_seconds_total whose use was measured.",
    "team",
)
MEASURED_GPU_SECONDS = _counter(
    "measured_gpu_seconds", "The part of muster_held_gpu_seconds_total whose use was measured.", "team"
)
MEASURED_SECONDS = _counter(
    "measured_seconds", "The part of muster_held_seconds_total in which something was measured.", "team"
)
USED_CPU_SECONDS = _counter("used_cpu_seconds", "Cpu time of jobs, once their minute is over.", "team")
USED_BYTE_SECONDS = _counter(
    "used_memory_byte_seconds",
    "Bytes of memory that jobs had, times seconds, once their minute is over.",
    "team",
)
USED_GPU_SECONDS = _counter(
    "used_gpu_seconds",
    "GPUs busy with jobs, times seconds, once their minute is over; busy as in muster_gpu_busy_ratio.",
    "team",
)

# --- Nodes ----------------------------------------------------------------------------------------------

NODE_HEALTH = _gauge(
    "node_health", "1 for the health that the node is in, 0 for the others.", "node", "health"
)
NODE_CAPACITY_CPUS = _gauge("node_capacity_cpus", "Cpus that jobs can hold.", "node")
NODE_CAPACITY_MEMORY = _gauge("node_capacity_memory_bytes", "Memory that jobs can hold.", "node")
NODE_CAPACITY_GPUS = _gauge("node_capacity_gpus", "GPUs that jobs can hold.", "node")
NODE_CPU_BUSY = _counter(
    "node_cpu_busy_seconds", "Time that the node's cpus were busy, since it booted.", "node"
)
NODE_MEMORY_USED = _gauge(
    "node_memory_used_bytes", "Memory in use, without what the kernel would give to whoever asks.", "node"
)
NODE_MEMORY_SIZE = _gauge("node_memory_size_bytes", "Memory that the node has.", "node")
NODE_DISK_USED = _gauge("node_disk_used_bytes", "In use of the disk on which Muster's home is.", "node")
NODE_DISK_SIZE = _gauge("node_disk_size_bytes", "Size of that disk.", "node")
NODE_STALLED = _counter(
    "node_stalled_seconds",
    "Time in which some process waited for it (pressure stall information, some), since the node booted.",
    "node",
    "resource",
)
METERS_SILENT = _gauge("meters_silent", "Meters that do not answer.")
METER_SILENT = _gauge("meter_silent_seconds", "For how long this meter has not answered.", "meter")

# --- GPUs -----------------------------------------------------------------------------------------------

_GPU = ("node", "gpu", "uuid", "model")
GPU_HELD = _gauge("gpu_held_ratio", "Part of it that is granted to jobs.", *_GPU)
GPU_HEALTHY = _gauge("gpu_healthy", "1 if jobs may be given it, else 0.", *_GPU)
GPU_LOST = _gauge("gpu_lost", "1 if it was there and no longer answers, else 0.", *_GPU)
GPU_BUSY = _gauge(
    "gpu_busy_ratio",
    "Part of the last moments in which anything ran on it, by the metric that the label names."
    " nvml-utilization is DCGM_FI_DEV_GPU_UTIL / 100: not how much of it was busy.",
    *_GPU,
    "metric",
)
GPU_MEMORY_USED = _gauge(
    "gpu_memory_used_bytes", "Memory taken on it, by whomever (DCGM_FI_DEV_FB_USED).", *_GPU
)
GPU_MEMORY_SIZE = _gauge("gpu_memory_size_bytes", "Memory that it has (DCGM_FI_DEV_FB_TOTAL).", *_GPU)
GPU_POWER = _gauge("gpu_power_watts", "Power that it draws (DCGM_FI_DEV_POWER_USAGE).", *_GPU)
GPU_TEMPERATURE = _gauge("gpu_temperature_celsius", "How hot it is (DCGM_FI_DEV_GPU_TEMP).", *_GPU)
GPU_ERRORS = _counter(
    "gpu_uncorrected_errors",
    "Memory errors that could not be corrected (DCGM_FI_DEV_ECC_DBE_AGG_TOTAL).",
    *_GPU,
)
GPU_FOREIGN = _gauge("gpu_foreign_processes", "Processes on it that Muster has not started.", *_GPU)

METRICS = tuple(value for value in tuple(globals().values()) if isinstance(value, Metric))
