# ruff: noqa: E501 - lines of logs are as long as they are
"""The ends of logs of programs that failed, as they really look, and what each of them is.

Each is written for its case; what matters is the shape: ranks and times before lines, tracebacks that are
chained, launchers that come after, warnings that look like errors.
"""

from typing import NamedTuple

from muster.steward.cause import Kind


class FailedLog(NamedTuple):
    kind: Kind
    shown: str  # a piece of the line that must be shown
    text: str
    exit_code: int = 1


_TORCH_OOM = """\
Epoch 1: 12%|█▏        | 118/984 [00:41<05:02,  2.86it/s, loss=2.31]
Traceback (most recent call last):
  File "/home/ana/train.py", line 212, in <module>
    main(parse())
  File "/home/ana/train.py", line 170, in main
    loss = model(batch.to(device)).mean()
           ^^^^^^^^^^^^^^^^^^^^^^^
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of 44.42 GiB \
of which 1.13 GiB is free. Of the allocated memory 41.02 GiB is allocated by PyTorch.
"""

LOGS: dict[str, FailedLog] = {
    "PyTorch is out of GPU memory": FailedLog(Kind.GPU_OUT_OF_MEMORY, "Tried to allocate 2.25 GiB", _TORCH_OOM),
    "an older PyTorch says it by a RuntimeError": FailedLog(
        Kind.GPU_OUT_OF_MEMORY,
        "RuntimeError: CUDA out of memory",
        "step 40\nTraceback (most recent call last):\n  File 'a.py', line 3, in <module>\n"
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 10.76 GiB total capacity)\n",
    ),
    "one rank of four is out of GPU memory and the others lose their peer": FailedLog(
        Kind.GPU_OUT_OF_MEMORY,
        "[rank2]: torch.OutOfMemoryError",
        """\
[rank2]: Traceback (most recent call last):
[rank2]:   File "/w/ddp.py", line 88, in <module>
[rank2]:     train()
[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 2 has 23.5 GiB.
[rank0]:[E ProcessGroupNCCL.cpp:475] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=91)
[rank0]: Traceback (most recent call last):
[rank0]:   File "/w/ddp.py", line 91, in <module>
[rank0]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.
[rank1]: RuntimeError: [../third_party/gloo/transport/tcp/pair.cc:525] Connection closed by peer [10.0.0.4]:3391
W0516 12:10:03.120000 140 torch/distributed/elastic/multiprocessing/api.py:858] Sending process 143 closing signal
E0516 12:10:04.220000 140 torch/distributed/elastic/multiprocessing/api.py:833] failed (exitcode: 1) local_rank: 2
Traceback (most recent call last):
  File "/venv/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
ddp.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-05-16_12:10:02
  host      : node7
  rank      : 2 (local_rank: 2)
  exitcode  : 1 (pid: 145)
============================================================
""",
    ),
    "NCCL passes on that CUDA was out of memory": FailedLog(
        Kind.GPU_OUT_OF_MEMORY,
        "Cuda failure",
        "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled cuda error, "
        "NCCL version 2.20.5 ncclUnhandledCudaError: Last error: Cuda failure 2 'out of memory'\n",
    ),
    "JAX is out of GPU memory": FailedLog(
        Kind.GPU_OUT_OF_MEMORY,
        "RESOURCE_EXHAUSTED",
        "2026-05-16 09:12:44.120391: W external/xla/xla/tsl/framework/bfc_allocator.cc:497] Allocator ran out\n"
        "Traceback (most recent call last):\n  File 'run.py', line 9, in <module>\n"
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
        "17179869184 bytes.\n",
    ),
    "TensorFlow is out of GPU memory": FailedLog(
        Kind.GPU_OUT_OF_MEMORY,
        "OOM when allocating",
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:\n"
        "\n"
        "2026-05-16 09:12:44.120391: E tensorflow/core/kernels/conv.cc:12] OOM when allocating tensor with "
        "shape[64,512,56,56] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by GPU_0_bfc\n",
    ),
    "TensorFlow is out of host memory": FailedLog(
        Kind.HOST_OUT_OF_MEMORY,
        "device:CPU:0",
        "ResourceExhaustedError: OOM when allocating tensor with shape[90000,90000] on "
        "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu\n",
    ),
    "a program in C++ is out of GPU memory": FailedLog(
        Kind.GPU_OUT_OF_MEMORY,
        "out of memory",
        "reading mesh\nCUDA error at solver.cu:118: out of memory (2)\n",
    ),
    "NumPy can't allocate": FailedLog(
        Kind.HOST_OUT_OF_MEMORY,
        "59.6 GiB",
        "Traceback (most recent call last):\n  File 'pca.py', line 4, in <module>\n    c = x.T @ x\n"
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 59.6 GiB for an array with shape "
        "(89443, 89443) and data type float64\n",
    ),
    "Python has no memory and nothing to add": FailedLog(
        Kind.HOST_OUT_OF_MEMORY,
        "MemoryError",
        "Traceback (most recent call last):\n  File 'a.py', line 1, in <module>\nMemoryError\n",
    ),
    "C++ throws for want of memory": FailedLog(
        Kind.HOST_OUT_OF_MEMORY,
        "std::bad_alloc",
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted\n",
        134,
    ),
    "a worker of the loader was killed": FailedLog(
        Kind.HOST_OUT_OF_MEMORY,
        "DataLoader worker",
        "RuntimeError: DataLoader worker (pid 5512) is killed by signal: Killed. \n",
    ),
    "R can't allocate": FailedLog(
        Kind.HOST_OUT_OF_MEMORY,
        "vector of size",
        "> m <- matrix(0, 1e5, 1e5)\nError: cannot allocate vector of size 74.5 Gb\nExecution halted\n",
    ),
    "Slurm says that it ran out of memory": FailedLog(
        Kind.HOST_OUT_OF_MEMORY,
        "oom_kill event",
        "slurmstepd: error: Detected 1 oom_kill event in StepId=481.batch. Some of the step tasks have been OOM "
        "Killed.\n",
    ),
    "Slurm says that its time was over": FailedLog(
        Kind.TIME_LIMIT,
        "DUE TO TIME LIMIT",
        "slurmstepd: error: *** JOB 481 ON gpub031 CANCELLED AT 2026-05-16T14:20:11 DUE TO TIME LIMIT ***\n",
    ),
    "Slurm says that its node failed": FailedLog(
        Kind.NODE_FAULT,
        "NODE FAILURE",
        "slurmstepd: error: *** STEP 481.0 ON gpub031 CANCELLED AT 2026-05-16T14:20:11 DUE TO NODE FAILURE ***\n",
    ),
    "the GPU has errors in its memory": FailedLog(
        Kind.GPU_FAULT,
        "uncorrectable ECC",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered\nCUDA kernel errors might be reported at "
        "some other API call\n",
    ),
    "the GPU fell off the bus": FailedLog(
        Kind.GPU_FAULT,
        "GPU is lost",
        "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost. Reboot the system to recover\n",
    ),
    "a kernel's log of a bad GPU is in the output": FailedLog(
        Kind.GPU_FAULT, "Xid", "NVRM: Xid (PCI:0000:3b:00): 79, pid=1023, GPU has fallen off the bus.\n"
    ),
    "a file is missing": FailedLog(
        Kind.MISSING_FILE,
        "/data/train.csv",
        "Traceback (most recent call last):\n  File 'a.py', line 1, in <module>\n    open(sys.argv[1])\n"
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.csv'\n",
    ),
    "a shell's tool misses a file": FailedLog(
        Kind.MISSING_FILE, "weights.bin", "cp: cannot stat '/data/weights.bin': No such file or directory\n"
    ),
    "a module is missing": FailedLog(
        Kind.MISSING_MODULE,
        "flash_attn",
        "Traceback (most recent call last):\n  File 'a.py', line 1, in <module>\n    import flash_attn\n"
        "ModuleNotFoundError: No module named 'flash_attn'\n",
    ),
    "a library is missing": FailedLog(
        Kind.MISSING_MODULE,
        "libcudart.so.11.0",
        "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n",
    ),
    "Node misses a module": FailedLog(
        Kind.MISSING_MODULE,
        "express",
        "node:internal/modules/cjs/loader:1147\n  throw err;\n  ^\n\nError: Cannot find module 'express'\n"
        "Require stack:\n- /srv/app.js\n    at Module._resolveFilename (node:internal/loader:1144:15)\n",
    ),
    "the loss is not a number and the program stops": FailedLog(
        Kind.NAN, "stopping training", "epoch 3 step 120\nLoss is nan, stopping training\n"
    ),
    "a check of the loss fails": FailedLog(
        Kind.NAN,
        "returned nan",
        "RuntimeError: Function 'LogSoftmaxBackward0' returned nan values in its 0th output.\n",
    ),
    "the loss was not a number when it gave up": FailedLog(
        Kind.NAN,
        "loss=nan",
        "step 100 loss=3.1\nstep 200 loss=nan\nTraceback (most recent call last):\n  File 'a.py', line 9\n"
        "AssertionError\n",
    ),
    "the command is not there": FailedLog(
        Kind.NOT_EXECUTED, "pyhton", "train.sh: line 4: pyhton: command not found\n", 127
    ),
    "the program is for another kind of machine": FailedLog(
        Kind.NOT_EXECUTED, "Exec format error", "bash: ./solver: cannot execute binary file: Exec format error\n", 126
    ),
    "somebody killed its process": FailedLog(
        Kind.KILLED_BY_OTHER, "Killed", "job.sh: line 3:  5123 Killed                  python train.py\n", 137
    ),
    "somebody interrupted it": FailedLog(
        Kind.KILLED_BY_OTHER,
        "KeyboardInterrupt",
        "Traceback (most recent call last):\n  File 'a.py', line 3, in <module>\n    time.sleep(9)\n"
        "KeyboardInterrupt\n",
        130,
    ),
    "its own error": FailedLog(
        Kind.OWN_ERROR,
        "KeyError: 'lr'",
        "Traceback (most recent call last):\n  File 'a.py', line 3, in <module>\n    c['lr']\nKeyError: 'lr'\n",
    ),
    "a kernel reads astray": FailedLog(
        Kind.OWN_ERROR,
        "illegal memory access",
        "RuntimeError: CUDA error: an illegal memory access was encountered\n",
    ),
    "the disk is full": FailedLog(
        Kind.OWN_ERROR, "No space left", "OSError: [Errno 28] No space left on device: 'ckpt/7.pt'\n"
    ),
    "it reads memory that is not its own": FailedLog(
        Kind.OWN_ERROR, "Segmentation fault", "run.sh: line 2:   812 Segmentation fault      ./sim in.nml\n", 139
    ),
    "it may not read a file": FailedLog(
        Kind.OWN_ERROR, "Permission denied", "PermissionError: [Errno 13] Permission denied: '/data/secret'\n"
    ),
    "an error that came up while a first one was handled": FailedLog(
        Kind.GPU_OUT_OF_MEMORY,
        "CUDA out of memory",
        "Traceback (most recent call last):\n  File 'a.py', line 3, in step\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
        "\nDuring handling of the above exception, another exception occurred:\n\n"
        "Traceback (most recent call last):\n  File 'a.py', line 9, in save\n"
        "AttributeError: 'NoneType' object has no attribute 'state_dict'\n",
    ),
    "an exception at the very end that Python ignored": FailedLog(
        Kind.MISSING_FILE,
        "vocab.txt",
        "Traceback (most recent call last):\n  File 'a.py', line 3, in <module>\n"
        "FileNotFoundError: [Errno 2] No such file or directory: 'vocab.txt'\n"
        "Exception ignored in: <function Pool.__del__ at 0x7f>\nTraceback (most recent call last):\n"
        "  File 'pool.py', line 268, in __del__\nAttributeError: 'Pool' object has no attribute '_state'\n",
    ),
    "a launcher that only passes on a failure": FailedLog(
        Kind.MISSING_MODULE,
        "apex",
        "ModuleNotFoundError: No module named 'apex'\nTraceback (most recent call last):\n"
        "  File 'launch.py', line 20, in <module>\n"
        "subprocess.CalledProcessError: Command '['python', 'train.py']' returned non-zero exit status 1.\n"
        "make: *** [Makefile:4: train] Error 1\n",
    ),
    "the bar of progress on the same line": FailedLog(
        Kind.GPU_OUT_OF_MEMORY,
        "CUDA out of memory",
        "  3%|▎ | 3/100 [00:01, loss=0.4]\r  4%|▍ | 4/100 [00:01, loss=0.4]\rRuntimeError: CUDA out of memory.\n",
    ),
    "ranks and colours before every line": FailedLog(
        Kind.MISSING_FILE,
        "tokens.bin",
        "[1,3]<stderr>:\x1b[31mFileNotFoundError: [Errno 2] No such file or directory: 'tokens.bin'\x1b[0m\n",
    ),
    "a rank was killed, and only the launcher tells": FailedLog(
        Kind.KILLED_BY_OTHER,
        "SIGKILL",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n=====\nt.py FAILED\n-----\n"
        "Root Cause (first observed failure):\n[0]:\n  rank      : 3 (local_rank: 3)\n  exitcode  : -9 (pid: 91)\n"
        "  traceback : Signal 9 (SIGKILL) received by PID 91\n=====\n",
    ),
    "the frames of C++ after the error": FailedLog(
        Kind.GPU_FAULT,
        "uncorrectable ECC",
        "terminate called after throwing an instance of 'c10::AcceleratorError'\n"
        "  what():  CUDA error: uncorrectable ECC error encountered\n"
        + "".join(f"frame #{n}: <unknown function> + 0x{n}c7 (0x7f30 in libc10.so)\n" for n in range(60)),
        134,
    ),
    "a message that follows its name at once": FailedLog(Kind.NAN, "NAN", "ValueError:Outputs are NAN! Stop\n"),
    "an actor of Ray": FailedLog(
        Kind.GPU_OUT_OF_MEMORY,
        "OutOfMemoryError",
        "(train_fn pid=8123, ip=10.0.0.3) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB\n",
    ),
}  # fmt: skip

# Nothing in these says why; each failed with exit code 1, so it is the program's own error.
HARMLESS: dict[str, str] = {
    "a sentence that says it did not happen": "checked 4 devices: no CUDA out of memory occurred\ndone, score 0.1\n",
    "a warning": "WARNING:root:CUDA out of memory, trying batch size 8\nscore too low\n",
    "a quiet level before it": "2026-05-16 12:00:01,120 INFO CUDA out of memory is handled by halving the batch\n",
    "help text": "  --on-oom {retry,fail}  what to do at: RuntimeError: CUDA out of memory\n",
    "source code in the output": "    raise FileNotFoundError(path)\n    except torch.OutOfMemoryError: CUDA out of memory\n",
    "an error level that says it goes on": "ERROR: CUDA out of memory, retrying with batch 8\nscore too low\n",
    "a quoted message": 'args: {"ignore": "ModuleNotFoundError: No module named \'x\'"}\n',
    "a loss that was bad once and is good again": "step 1 loss=nan\nstep 2 loss=0.4\nstep 3 loss=0.3\n",
    "an error that was handled long before the end": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB\n"
        + "".join(f"step {n} took 0.2 s\n" for n in range(60))
    ),
    "a tool that missed a file while the script went on": (
        "ls: cannot access '/opt/site.conf': No such file or directory\n"
        + "".join(f"chunk {n} ok\n" for n in range(9))
    ),
    "a driver error that programs cause": "NVRM: Xid (PCI:0000:3b:00): 31, pid=1023, MMU Fault\n",
    "a library that only tells what it looked for": (
        "gpub7:23:45 [3] NCCL INFO NET/Plugin: libnccl-net.so: cannot open shared object file: No such file or directory\n"
    ),
    "nothing at all": "",
}  # fmt: skip
