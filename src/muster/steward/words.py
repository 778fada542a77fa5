"""What the words of an error mean: the messages of Python, PyTorch, JAX, TensorFlow, CUDA, NCCL, shells.

Words count only in a message that is known to be an error's; ``signs`` sees to that.
"""

import enum
import re
from typing import NamedTuple

from muster.steward.cause import Kind


class Weight(enum.Enum):
    FINAL = "names the cause"
    WEAK = "names the cause if hardly anything comes after"  # scripts go on after such lines
    GENERIC = "an error of which no more is known"
    ECHO = "says that something has failed, and not what"
    IGNORED = "what comes after did not end it"
    HINT = "says that something was amiss"
    FINE = "says that it was not"


class Sign(NamedTuple):
    kind: Kind
    action: str
    weight: Weight = Weight.FINAL


def own(action: str, weight: Weight = Weight.FINAL) -> Sign:
    return Sign(Kind.OWN_ERROR, action, weight)


# --- What to do -------------------------------------------------------------------------------------

_LOOK = "Look at the lines before it in the log."
_MORE_MEMORY = "Ask for more memory with --mem, or load less at once."
_MORE_GPU_MEMORY = "Ask for a GPU with more memory (--gpu-memory), or make the batch smaller."
_INSTALL = "Install it in the environment that the job runs in, and submit again."
_PATH = "Check the path: it must exist on the node, and relative ones start at the job's folder."
_HARDWARE = "Nothing is wrong with the job: run it on another GPU, and tell who looks after the node."
_ELSEWHERE = "Nothing is wrong with the job: run it on another node."
_FORK = "Ask for more processes with --pids, or start fewer workers."
_ASK_GPU = "Ask for a GPU with --gpus, and use the one in CUDA_VISIBLE_DEVICES."
_LESS_STEEP = "Lower the learning rate or clip gradients, and look at what came in before it."
_HEAP = "Give it a larger heap (-Xmx, --max-old-space-size) within what it asks of memory."
_KERNEL = "Run it with CUDA_LAUNCH_BLOCKING=1 to see which kernel it is."
_BUILT = "Its CUDA code was built for other GPUs: name the model with --gpu-model, or rebuild."
_DISK = "Free room on the disk that it writes to, or write elsewhere."
_QUOTA = "Free room in the quota of its owner, or write elsewhere."
_SHARED = "Start fewer DataLoader workers, or share by file_system: /dev/shm is full."
_FILES = "Raise ulimit -n in the script, or open fewer files at once."
_PORT = "Use MASTER_PORT, or another port: somebody on the node has this one."
_RIGHTS = "Let its owner read and write what the line names."
_OTHERS = "Something else has failed first: look at the lines before, and at the logs of other parts."
_EXECUTE = "Check the command's name, its first line and that it may be executed on the node."
_OUTSIDE = "Ask who looks after the node: a process of it was killed from outside."
_INTERRUPTED = "Somebody interrupted it (SIGINT): submit it again if that was not meant."

# --- Signs ------------------------------------------------------------------------------------------

OWN = own(_LOOK, Weight.GENERIC)
LOUD = own(_LOOK, Weight.ECHO)
ECHO = own(_OTHERS, Weight.ECHO)
IGNORED = own(_LOOK, Weight.IGNORED)
HOST_MEMORY = Sign(Kind.HOST_OUT_OF_MEMORY, _MORE_MEMORY)
GPU_MEMORY = Sign(Kind.GPU_OUT_OF_MEMORY, _MORE_GPU_MEMORY)
GPU_FAULT = Sign(Kind.GPU_FAULT, _HARDWARE)
MODULE = Sign(Kind.MISSING_MODULE, _INSTALL)
FILE = Sign(Kind.MISSING_FILE, _PATH)
NAN = Sign(Kind.NAN, _LESS_STEEP)
NOT_EXECUTED = Sign(Kind.NOT_EXECUTED, _EXECUTE)
KILLED = Sign(Kind.KILLED_BY_OTHER, _OUTSIDE)
NO_ROOM = own(_DISK)
SEGMENTATION = own("It reads or writes memory that is not its own: run it under a debugger.")
ILLEGAL = own("It was built for another kind of cpu: rebuild it on this one.")
BUS = own(_SHARED)
_TIME = Sign(Kind.TIME_LIMIT, "Ask for more time with --time.")
_PREEMPTED = Sign(Kind.PREEMPTED, "Nothing to do: it was made to leave for another.")
_NODE = Sign(Kind.NODE_FAULT, _ELSEWHERE)

# All words of an entry, in lower case, in an error's message. The first entry that fits counts.
_BY_WORDS: tuple[tuple[tuple[str, ...], Sign], ...] = (
    (("java heap space",), own(_HEAP)),
    (("gc overhead limit",), own(_HEAP)),
    (("javascript heap",), own(_HEAP)),
    (("oom when allocating", "device:cpu"), HOST_MEMORY),
    (("oom when allocating",), GPU_MEMORY),
    (("cuda out of memory",), GPU_MEMORY),
    (("hip out of memory",), GPU_MEMORY),
    (("mps backend out of memory",), GPU_MEMORY),
    (("cuda", "error", "out of memory"), GPU_MEMORY),
    (("cuda failure", "out of memory"), GPU_MEMORY),  # as NCCL says it
    (("cuda_error_out_of_memory",), GPU_MEMORY),
    (("cudaerrormemoryallocation",), GPU_MEMORY),
    (("cublas_status_alloc_failed",), GPU_MEMORY),
    (("cudnn_status_alloc_failed",), GPU_MEMORY),
    (("resource_exhausted", "out of memory"), GPU_MEMORY),
    (("resource_exhausted", "failed to allocate"), GPU_MEMORY),
    (("resource exhausted", "out of memory"), GPU_MEMORY),
    (("defaultcpuallocator",), HOST_MEMORY),
    (("unable to allocate", "for an array"), HOST_MEMORY),
    (("cannot allocate memory",), HOST_MEMORY),
    (("cannot allocate vector of size",), HOST_MEMORY),
    (("std::bad_alloc",), HOST_MEMORY),
    (("runtime: out of memory",), HOST_MEMORY),
    (("oom_kill event",), HOST_MEMORY),
    (("oom killed",), HOST_MEMORY),
    (("out of memory: killed process",), HOST_MEMORY),
    (("is killed by signal: killed",), HOST_MEMORY),  # a worker of PyTorch's DataLoader
    (("uncorrectable ecc",), GPU_FAULT),
    (("ecc_uncorrectable",), GPU_FAULT),
    (("gpu is lost",), GPU_FAULT),
    (("fallen off the bus",), GPU_FAULT),
    (("uncorrectable nvlink",), GPU_FAULT),
    (("no cuda gpus are available",), own(_ASK_GPU)),
    (("no cuda-capable device",), own(_ASK_GPU)),
    (("found no nvidia driver",), own(_ASK_GPU)),
    (("no kernel image is available",), own(_BUILT)),
    (("illegal memory access",), own(_KERNEL)),
    (("device-side assert",), own(_KERNEL)),
    (("no space left on device",), NO_ROOM),
    (("disk quota exceeded",), own(_QUOTA)),
    (("out of shared memory",), own(_SHARED)),
    (("too many open files",), own(_FILES)),
    (("can't start new thread",), own(_FORK)),
    (("resource temporarily unavailable",), own(_FORK)),
    (("address already in use",), own(_PORT)),
    (("permission denied",), own(_RIGHTS)),
    (("due to time limit",), _TIME),
    (("due to preemption",), _PREEMPTED),
    (("due to node failure",), _NODE),
    (("no module named",), MODULE),
    (("cannot find module",), MODULE),
    (("there is no package called",), MODULE),
    (("cannot open shared object file",), MODULE),
    (("no such file or directory",), FILE),
    (("nccl",), ECHO),
    (("closed by peer",), ECHO),
    (("reset by peer",), ECHO),
    (("broken pipe",), ECHO),
    (("collective operation timeout",), ECHO),
    (("exited unexpectedly",), ECHO),
)

_BY_NAME = {
    "FileNotFoundError": FILE,
    "ModuleNotFoundError": MODULE,
    "MemoryError": HOST_MEMORY,
    "_ArrayMemoryError": HOST_MEMORY,
    "OutOfMemoryError": GPU_MEMORY,
    "FloatingPointError": NAN,
    "KeyboardInterrupt": Sign(Kind.KILLED_BY_OTHER, _INTERRUPTED),
}

# Who only passes on that another has failed, whatever is in the message.
_ECHOES = frozenset(
    {
        "ActorDiedError",
        "BrokenPipeError",
        "BrokenProcessPool",
        "CalledProcessError",
        "ChildFailedError",
        "ConnectionResetError",
        "ProcessExitedException",
        "ProcessRaisedException",
        "RayTaskError",
        "WorkerCrashedError",
    }
)
_NAMES_END = ("Error", "Exception", "Interrupt", "Exit", "ProcessPool")
_LONGEST_NAME = 160
_NOT_A_NUMBER = re.compile(r"\b(?:nan|nans|non-finite)\b")


def has_nan(text: str) -> bool:
    return _NOT_A_NUMBER.search(text.lower()) is not None


def of_message(message: str) -> Sign | None:
    """What an error's message says, None if nothing in particular."""
    low = message.lower()
    for words, sign in _BY_WORDS:
        if all(word in low for word in words):
            return sign
    return NAN if has_nan(low) else None


def of_exception(text: str) -> Sign | None:
    """A line such as ``torch.OutOfMemoryError: CUDA out of memory``: a dotted name, maybe a message."""
    head, _, message = text.rstrip().partition(":")
    path = head.partition("(")[0]
    name = path.rpartition(".")[2]
    if len(head) > _LONGEST_NAME or not name.endswith(_NAMES_END):
        return None
    if not path.replace(".", "_").isidentifier():
        return None
    if name in _ECHOES:
        return ECHO
    return of_message(message) or _BY_NAME.get(name) or OWN
