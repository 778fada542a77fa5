"""What the script of an attempt does on nodes: it starts the parts of a gang, and keeps logs within bounds.

**A gang** is one step of ``srun``'s, over all components where its parts are unlike: ranks, and which node is
which, are Slurm's own and count over all of them. A part is a shell that sets its scene and becomes the
program: Slurm signals no children. When a part fails, Slurm ends the others, and ``srun`` gives the highest
code of all, which may be that of somebody who was ended. But it says who was first, and the script ends with
that one's code.

**A log** is bounded as on one machine: by cutting it back, from beside the program. What came up to the limit
stays, a line says that the rest is dropped, and it is. A pipe would be in the way: what is in it when a job
is killed is lost, and who keeps it open keeps the job. Whoever cuts sits on the node that writes, as file
systems differ in what other nodes see when; it hears no signal, is nobody's child, and ends with the part.
It looks every other second, and ten times as often while the log would be past its limit before. What is
written after its last look is cut when the end is told.
"""

import shlex
from collections.abc import Iterator, Sequence

from muster.engines.local.logs import full_notice
from muster.engines.local.orders import run_of
from muster.engines.slurm.components import components_of
from muster.home import Home
from muster.model.job import Job

_PORTS_FROM, _PORTS = 20_000, 20_000
_SIGNALS = "HUP INT QUIT USR1 USR2 ALRM TERM XCPU"
_CALM_SECONDS, _OFTEN_SECONDS = 2, 0.2

# Of a part; $0 is where its log is, without rank and end. Its words are in here: srun has a use for colons.
_PART = """
export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID NODE_RANK=$SLURM_NODEID
exec >>"$0.$RANK.log" 2>&1
{bounded}
exec {words}
"""

# After srun, that has said in $muster_said what became of tasks: ``srun: error: gpu07: task 3: Killed``.
_CODE = """
code=$?
cat "$muster_said"
if [ $code != 0 ]; then
    first=$(sed -n '/^srun: error: [^:]*: tasks\\{0,1\\} [^:]*: /{s/.*: //p;q;}' "$muster_said")
    case $first in
        "Exited with exit code "[1-9]*) code=${first##* } ;;
        Aborted*) code=134 ;;
        Killed* | Out*) code=137 ;;
        Segmentation*) code=139 ;;
    esac
fi
exit $code
"""

_BOUNDED = """
(trap '' {signals}
size=0 pause={calm} times=1
while kill -0 $$; do
    before=$size size=$(wc -c <{log})
    full=$((size > {beyond})) soon=$((size > before && size + (size - before) * times > {most}))
    pause={calm} times=1
    [ $full = 1 ] && truncate -s {most} {log} && printf %s {notice} >>{log} && size={most}
    [ $full$soon = 00 ] || pause={often} times={times}
    sleep $pause || sleep {calm}
done &) >/dev/null 2>&1 </dev/null
"""


def bounded(log: str, most_bytes: int) -> Iterator[str]:
    """Lines that keep a log (a word of the shell's) within its bound, while who runs them lives."""
    notice = full_notice(most_bytes)
    yield _BOUNDED.strip().format(
        signals=_SIGNALS,
        log=log,
        most=most_bytes,
        beyond=most_bytes + len(notice),
        notice=shlex.quote(notice),
        calm=_CALM_SECONDS,
        often=_OFTEN_SECONDS,
        times=round(_CALM_SECONDS / _OFTEN_SECONDS),
    )


def gang(job: Job, attempt: int, home: Home, words: Sequence[str]) -> Iterator[str]:
    """Where the parts meet is the node of the first, which is this one."""
    lines = "\n".join(bounded('"$0.$RANK.log"', run_of(job).log_bytes))
    part = _PART.format(bounded=lines, words=shlex.join(words))
    yield f"export WORLD_SIZE={job.gang.size} MASTER_ADDR=$(hostname)"
    yield f"export MASTER_PORT=$(({_PORTS_FROM} + SLURM_JOB_ID % {_PORTS}))"
    yield f"muster_part={shlex.quote(part)}"
    yield f"muster_said={shlex.quote(f'{home.logs}/{job.id}/{attempt}.srun')}"
    yield f"trap : {_SIGNALS}"
    program = f'sh -c "$muster_part" {shlex.quote(f"{home.logs}/{job.id}.{attempt}")}'
    steps = " : ".join(f"{options} {program}" for options in _steps(job))
    yield f'"$muster_srun" {steps} 2>"$muster_said"'
    yield _CODE.strip()


def _steps(job: Job) -> Iterator[str]:
    kinds = components_of(job.gang)
    for place, one in enumerate(kinds):
        group = f"--het-group={place} " if len(kinds) > 1 else ""
        asked = f"--ntasks={one.count} --cpus-per-task={one.cpus}"
        yield f"{group}--export=ALL {asked} --kill-on-bad-exit=1"
