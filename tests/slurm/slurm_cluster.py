"""A real Slurm on this machine: munged, MariaDB, slurmdbd, slurmctld, four slurmd with GPUs that are files.

The daemons live in namespaces of their own (processes, mounts) with a part of the cgroups bound over the
whole, on ports that were free: so several can stand side by side, they find nothing of each other, and when
the first process of the namespace goes, all of it is gone: daemons, jobs and what those have started. That
first process goes when its stdin is closed, which the kernel does for a test run that is killed. Slurm's
commands run outside, with ``SLURM_CONF`` and a munge socket of this cluster's.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

NODES = ("node1", "node2", "node3", "node4")
ORDINARY = ("games", "news")
"""Users without any rights in Slurm but their own: every Debian has them."""
WANTED = "MUSTER_TEST_SLURM"
PATIENCE_SECONDS = 60.0
_WELL = ("idle", "mix", "comp", "alloc")
_COMMANDS = (
    *("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "sbatch", "srun"),
    "slurmrestd",
)
_CONTROLLERS = ("cpuset", "memory", "devices", "freezer", "cpuacct", "cpu")

# The first process: takes in who loses their parent, and goes when nobody holds its stdin any more.
_FIRST = """
import os, select
poll = select.poll()
poll.register(0, select.POLLHUP | select.POLLIN)
while not poll.poll(200) or os.read(0, 1):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
"""

_SLURM = """
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={b}/munge/socket,cred_expire=5
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={b}/jwt.key
SlurmctldPort={ctld}
SlurmdSpoolDir={b}/spool/%n
SlurmdPidFile={b}/run/slurmd.%n.pid
SlurmdLogFile={b}/log/slurmd.%n.log
SlurmctldPidFile={b}/run/slurmctld.pid
SlurmctldLogFile={b}/log/slurmctld.log
StateSaveLocation={b}/state
SlurmdParameters=config_overrides
SlurmdTimeout=15
ReturnToService=2
MpiDefault=none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SwitchType=switch/none
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
JobAcctGatherType=jobacct_gather/cgroup
JobAcctGatherFrequency=task=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=200
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,sched_min_interval=200000,bf_interval=2,bf_continue,default_queue_depth=1000
PreemptType=preempt/qos
PreemptMode=REQUEUE
JobRequeue=1
KillWait=3
MinJobAge=300
MaxJobCount=20000
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd}
AccountingStoragePass={b}/munge/socket
AccountingStorageTRES=gres/gpu,gres/gpu:a40
{nodes}PartitionName=all Nodes=node[1-4] Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
PartitionName=gpu Nodes=node[1-3] MaxTime=INFINITE State=UP OverSubscribe=NO
PartitionName=cpu Nodes=node4 MaxTime=INFINITE State=UP
"""
_DBD = """
AuthType=auth/munge
AuthInfo=socket={b}/munge/socket
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={b}/jwt.key
DbdAddr=127.0.0.1
DbdHost=localhost
DbdPort={dbd}
SlurmUser=root
CommunicationParameters=NoInAddrAny
PidFile={b}/run/slurmdbd.pid
LogFile={b}/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""
_CGROUP = """
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
CgroupAutomount=no
ConstrainCores=no
ConstrainRAMSpace=yes
ConstrainDevices=yes
"""
_NODE = "NodeName=node{n} NodeAddr=127.0.0.1 NodeHostname=localhost Port={port} {has}"
_WITH_GPUS = "CPUs=8 RealMemory=16000 Gres=gpu:a40:4 Feature=a40,rack{rack}"
_WITHOUT = "CPUs=16 RealMemory=32000 Feature=rack2"
_GRES = "NodeName=node[1-3] Name=gpu Type=a40 File={b}/dev/nvidia[0-3]\n"


def why_not() -> str | None:
    """Why there is to be no cluster here; None: there is."""
    if not os.environ.get(WANTED):
        return "a real Slurm takes minutes: make test-slurm installs one and runs these"
    missing = [name for name in _COMMANDS if shutil.which(name, path=_path()) is None]
    if missing:
        return f"Slurm is not installed ({', '.join(missing)} missing): make test-slurm installs and tests it"
    if os.geteuid() != 0:
        return "only root can start a Slurm of several nodes"
    if not os.path.isdir("/sys/fs/cgroup/memory"):
        return "this Slurm (22.05) needs cgroups of version 1"
    return None


def started() -> "Cluster":
    """A cluster that is up."""
    cluster = Cluster()
    try:
        cluster.start()
    except BaseException:
        cluster.stop()
        raise
    return cluster


class Cluster:
    """Slurm, up. ``conf`` is what ``SLURM_CONF`` is to be."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="muster-slurm-"))
        self.folder.chmod(0o755)
        self.conf = str(self.folder / "slurm.conf")
        self._first: subprocess.Popen[bytes] | None = None
        self._groups: list[Path] = []
        self._ports: dict[str, int] = {}

    def start(self) -> None:
        self._write_configuration()
        self._make_groups()
        self._unshare()
        self._start_munge()
        self._start_database()
        self.run("slurmdbd")
        self.until(lambda: self._tries("sacctmgr", "-i", "add", "cluster", "test"), "slurmdbd")
        self._add_people()
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        self.until(self._all_idle, "the nodes to be idle")

    def stop(self) -> None:
        if self._first is not None:
            assert self._first.stdin is not None
            self._first.stdin.close()
            try:
                self._first.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self._first.kill()
        for group in self._groups:
            _remove_group(group)
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- What tests do to it ---

    def start_controller(self) -> None:
        self.run("slurmctld")
        self.until(lambda: self._tries("scontrol", "ping") and self._tries("squeue"), "slurmctld")

    def kill_controller(self) -> None:
        self._kill("slurmctld")

    def start_node(self, node: str) -> None:
        self.run("slurmd", "-N", node)

    def kill_node(self, node: str) -> None:
        """slurmd alone, at once; the jobs' own processes are Slurm's to see to."""
        self._kill(f"slurmd.{node}")

    def lose_node(self, node: str) -> None:
        """And tell the controller at once: it would find out when its patience is over."""
        self.kill_node(node)
        self.ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=lost")

    def tidy(self) -> None:
        """Nobody in the queue, every node up and idle."""
        self.until(lambda: self._tries("scancel", *self._everybody()), "scancel")
        for node in NODES:
            if not (self.folder / "run" / f"slurmd.{node}.pid").exists():
                self.start_node(node)
            if not self.ask("sinfo", "-h", "-n", node, "-o", "%t").startswith(_WELL):
                self._tries("scontrol", "update", f"NodeName={node}", "State=RESUME")
        self.until(self._all_idle, "the nodes to be idle again")

    def _everybody(self) -> list[str]:
        """By the numbers that scancel understands: tasks that wait are listed as one, ``12_[3-5%2]``."""
        listed = self.ask("squeue", "-h", "-o", "%F").split()
        return sorted(set(listed)) or ["--state=PENDING"]

    def ask(self, *words: str) -> str:
        """A command of Slurm's, from outside."""
        done = subprocess.run(words, env=self.environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}: {done.stderr or done.stdout}"
        return done.stdout

    def ask_anyway(self, *words: str) -> str:
        """One that may fail."""
        done = subprocess.run(words, env=self.environment(), capture_output=True, text=True, check=False)
        return done.stdout

    def environment(self) -> dict[str, str]:
        return {"SLURM_CONF": self.conf, "PATH": _path(), "LC_ALL": "C.UTF-8", "TZ": "UTC"}

    def run(self, *words: str) -> None:
        """A daemon, inside."""
        done = subprocess.run(
            self.inside(*words),
            env=self.environment(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stderr or done.stdout}; {self._logs()}"

    def inside(self, *words: str) -> list[str]:
        """The command that runs this one in the cluster's namespaces."""
        assert self._first is not None
        return ["nsenter", "--target", str(self._inner), "--mount", "--pid", "--", *words]

    # --- Setting up ---

    def _write_configuration(self) -> None:
        names = ("ctld", "dbd", "sql", "d1", "d2", "d3", "d4")
        self._ports = dict(zip(names, free_ports(len(names)), strict=True))
        for name in ("run", "log", "state", "spool", "dev", "mysql", "munge"):
            (self.folder / name).mkdir(mode=0o755)
        for number in range(4):
            os.mknod(self.folder / "dev" / f"nvidia{number}", 0o020666, os.makedev(195, number))
        (self.folder / "jwt.key").write_bytes(os.urandom(32))
        (self.folder / "jwt.key").chmod(0o600)
        texts = {"slurm.conf": _SLURM, "slurmdbd.conf": _DBD, "cgroup.conf": _CGROUP, "gres.conf": _GRES}
        for name, text in texts.items():
            path = self.folder / name
            path.write_text(text.format(b=self.folder, nodes=self._node_lines(), **self._ports))
            path.chmod(0o600 if name == "slurmdbd.conf" else 0o644)

    def _node_lines(self) -> str:
        has = [_WITH_GPUS.format(rack=1), _WITH_GPUS.format(rack=1), _WITH_GPUS.format(rack=2), _WITHOUT]
        lines = [_NODE.format(n=n, port=self._ports[f"d{n}"], has=text) for n, text in enumerate(has, 1)]
        return "\n".join([*lines, ""])

    def _make_groups(self) -> None:
        """A part of each controller's tree, that is the whole for who is inside."""
        for controller in _CONTROLLERS:
            group = Path("/sys/fs/cgroup", controller, self.folder.name)
            group.mkdir()
            self._groups.append(group)
            if controller == "cpuset":
                for name in ("cpuset.cpus", "cpuset.mems"):
                    (group / name).write_text((group.parent / name).read_text())

    def _unshare(self) -> None:
        binds = "".join(f"mount --bind {group} {group.parent}; " for group in self._groups)
        script = f"{binds} exec {sys.executable} -c '{_FIRST}'"
        self._first = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec", script],
            stdin=subprocess.PIPE,
        )
        children = Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children")
        self.until(lambda: children.read_text().strip(), "the namespace")
        self._inner = int(children.read_text())
        self.until(
            lambda: b"select" in Path(f"/proc/{self._inner}/cmdline").read_bytes(), "the first process"
        )

    def _start_munge(self) -> None:
        folder = self.folder / "munge"
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o600)
        for path in (folder, folder / "key"):
            shutil.chown(path, "munge", "munge")
        names = {
            "socket": "socket",
            "key-file": "key",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        options = [f"--{option}={folder}/{name}" for option, name in names.items()]
        self.run("runuser", "-u", "munge", "--", "munged", *options)

    def _start_database(self) -> None:
        data, scratch = self.folder / "mysql", self.folder / "mysql-scratch"
        scratch.mkdir()  # in a folder that they share, each removes the files of the others when it starts
        for path in (data, scratch):
            shutil.chown(path, "mysql", "mysql")
        subprocess.run(
            ["mariadb-install-db", "--no-defaults", "--user=mysql", f"--datadir={data}",
             f"--tmpdir={scratch}", "--skip-test-db", "--auth-root-authentication-method=socket"],
            env=self.environment(), check=True, capture_output=True,
        )  # fmt: skip
        words = (
            *("runuser", "-u", "mysql", "--", "mariadbd", "--no-defaults", f"--datadir={data}"),
            *(
                f"--tmpdir={scratch}",
                f"--socket={data}/s.sock",
                f"--pid-file={data}/pid",
                "--bind-address=127.0.0.1",
            ),
            *(f"--port={self._ports['sql']}", "--innodb-lock-wait-timeout=900"),
            *("--innodb-flush-log-at-trx-commit=0", "--skip-log-bin"),
        )
        log = self.folder / "log" / "mysql.log"
        self.run("sh", "-c", f"setsid {' '.join(words)} </dev/null >{log} 2>&1 &")
        sql = (
            "create database slurm_acct_db; create user slurm@'127.0.0.1' identified by 'slurm'; "
            "grant all on slurm_acct_db.* to slurm@'127.0.0.1'"
        )
        self.until((data / "s.sock").exists, "MariaDB")
        self.until(lambda: self._tries("mariadb", "-S", f"{data}/s.sock", "-e", sql), "the database")

    def _add_people(self) -> None:
        """Everybody may be preempted who is ``low``, by who is ``high``."""
        for words in (
            ("add", "qos", "low"),
            ("add", "qos", "high"),
            ("modify", "qos", "high", "set", "Preempt=low", "Priority=100"),
            ("add", "account", "ml"),
            *(("add", "user", name, "Account=ml", "QOS=normal,low,high") for name in ("root", *ORDINARY)),
        ):
            self.ask("sacctmgr", "-i", *words)

    # --- Small things ---

    def _all_idle(self) -> bool:
        states = self.ask("sinfo", "-h", "-N", "-o", "%T").split()
        return bool(states) and set(states) == {"idle"}

    def _kill(self, name: str) -> None:
        pid_file = self.folder / "run" / f"{name}.pid"
        pid = int(pid_file.read_text())
        self.run("kill", "-KILL", str(pid))
        pid_file.unlink(missing_ok=True)

    def _tries(self, *words: str) -> bool:
        done = subprocess.run(words, env=self.environment(), capture_output=True, check=False)
        return done.returncode == 0

    def until(self, true: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not true():
            assert time.monotonic() < deadline, f"waited in vain for {what}; {self._logs()}"
            time.sleep(0.05)

    def _logs(self) -> str:
        """The last words of each daemon."""
        said = []
        for path in sorted((self.folder / "log").glob("*.log")):
            lines = path.read_text(errors="replace").splitlines()
            said.append(f"{path.name}: " + " | ".join(lines[-5:]))
        return "\n".join(said)


def _path() -> str:
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def free_ports(count: int) -> Sequence[int]:
    """Free now, which is as much as can be known."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def _remove_group(group: Path) -> None:
    """With all below it; what is left of processes there is dead, and takes a moment to be gone."""
    for _ in range(50):
        for folder, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        if not group.exists():
            return
        time.sleep(0.1)


def main() -> None:
    """A cluster to try things on, until interrupted."""
    cluster = started()
    try:
        sys.stdout.write(f"export SLURM_CONF={cluster.conf}\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        cluster.stop()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
