"""What the processes of a part show, where no group shows it.

Memory is what each has of its own, and of what they share, the most that one has; pages that a fork has left
common to parent and child, until one writes, are counted with both. Its peak is the most that was seen, or
that one process alone tells of itself. Waits for a cpu or a disk are those of main threads, and the longest
counts.

Parents are looked at before their children. So whoever is seen alive had not been inherited from when its
parent was seen; and if someone has ended, all are looked at again, by when whoever waited has inherited.
"""

from collections.abc import Collection, Hashable

from muster.monitor.meters import lives
from muster.monitor.meters.files import File, Gone, Room, whole
from muster.monitor.meters.groups import CPU, IO, MEMORY, STALLS
from muster.monitor.meters.lives import Held, Life, Seen, Used
from muster.monitor.meters.shown import Longest, Shown, summed

ALL = frozenset((CPU, MEMORY, IO, STALLS))
_LOOKS = 3  # at those who go on ending while we look
_DELAYS = "sys/kernel/task_delayacct"


class _Process:
    """The files of one process."""

    def __init__(self, folder: str, room: Room) -> None:
        self._folder, self._room = folder, room
        self._files: dict[str, File] = {}
        self._started: int | None = None  # not looked at yet

    def life(self) -> Life | None:
        """``Gone`` if it is, or if it is another one by now; None if it can't be understood."""
        text = self._file("stat").read()
        life = None if text is None else lives.parse_stat(text)
        if life is not None:
            if self._started not in (None, life.started):
                raise Gone
            self._started = life.started
        return life

    def text(self, name: str) -> bytes:
        """Nothing, if we may not read it, or if this kernel does not have it."""
        try:
            return self._file(name).read() or b""
        except Gone:
            self.life()
            return b""

    def _file(self, name: str) -> File:
        if name not in self._files:
            self._files[name] = File(f"{self._folder}/{name}", self._room)
        return self._files[name]

    def close(self) -> None:
        for file in self._files.values():
            file.close()


class _Look:
    """What one look at everybody has shown."""

    def __init__(self) -> None:
        self.seen: dict[int, Seen] = {}
        self.held: list[Held | None] = []
        self.queued: dict[Hashable, float | None] = {}
        self.delayed: dict[Hashable, float | None] = {}
        self.processes = 0
        self.is_whole = True  # everybody was understood


class TreeMeter:
    """Reads the processes of one part: those that it is told, and those of earlier that still live."""

    def __init__(self, wants: frozenset[str], room: Room, proc: str = "/proc") -> None:
        self._wants, self._room, self._proc = wants, room, proc
        self._processes: dict[int, _Process] = {}
        self._seen: dict[int, Seen] = {}
        self._left = Used(0.0, 0, 0)  # of the ended
        self._has_seen = False
        self._cpu_seconds, self._peak_bytes = 0.0, 0
        self._queued, self._delayed = Longest(), Longest()
        self._tells_delays = _tells_delays(proc)

    def read(self, told: Collection[int]) -> Shown:
        """Nothing is known of a tree of which nobody was ever seen: they may have been there before."""
        look = self._settled(told)
        self._has_seen = self._has_seen or bool(look.seen)
        if not self._has_seen or not look.is_whole:
            return Shown()
        shown = Shown(processes=look.processes)
        if CPU in self._wants:
            shown.cpu_seconds = self._cpu()
        if MEMORY in self._wants:
            shown.memory_bytes = _memory_bytes(look.held)
            shown.memory_peak_bytes = self._peak(shown.memory_bytes, look.held)
        if IO in self._wants:
            used = [seen.used for seen in self._seen.values()]
            shown.read_bytes = summed([self._left.read_bytes, *(u.read_bytes for u in used)])
            shown.written_bytes = summed([self._left.written_bytes, *(u.written_bytes for u in used)])
        if STALLS in self._wants:
            shown.cpu_stalled_seconds = self._queued.add(look.queued)
            shown.io_stalled_seconds = self._delayed.add(look.delayed) if self._tells_delays else None
        return shown

    def close(self) -> None:
        for process in self._processes.values():
            process.close()
        self._processes.clear()

    # --- Looking ----------------------------------------------------------------------------------

    def _settled(self, told: Collection[int]) -> _Look:
        """A look after which it is known of all who have ended whether they were inherited from."""
        before, look = self._seen, self._look(told)
        for _ in range(_LOOKS):
            if not lives.ended(before, look.seen):
                break
            again = self._look(())
            vanished = lives.ended(look.seen, again.seen)
            before = before | {pid: look.seen[pid] for pid in vanished}
            look = again
            if not vanished:
                break
        if lives.ended(before, look.seen):
            self._left = lives.added(self._left, lives.left_behind(before, look.seen))
        self._seen = look.seen
        return look

    def _look(self, told: Collection[int]) -> _Look:
        look = _Look()
        new = [pid for pid in told if pid not in self._processes]
        for pid in (*self._processes, *sorted(new)):
            if not self._see(pid, look) and pid in told:
                self._see(pid, look)  # somebody else has its number by now
        return look

    def _see(self, pid: int, look: _Look) -> bool:
        """Look at one; False if it is gone."""
        process = self._processes.get(pid)
        if process is None:
            process = self._processes[pid] = _Process(f"{self._proc}/{pid}", self._room)
        try:
            self._look_at(pid, process, look)
        except Gone:
            process.close()
            del self._processes[pid]
            return False
        return True

    def _look_at(self, pid: int, process: _Process, look: _Look) -> None:
        life = process.life()
        if life is None:
            look.is_whole = False
            if pid in self._seen:
                look.seen[pid] = self._seen[pid]
            return
        read, written = lives.parse_io(process.text("io")) if IO in self._wants else (None, None)
        held = lives.parse_status(process.text("status")) if MEMORY in self._wants else None
        queued = lives.parse_queued(process.text("schedstat"), life) if STALLS in self._wants else None
        used = Used(life.own_seconds + life.inherited_seconds, read, written)
        inherited = Used(life.inherited_seconds, read, written)
        look.seen[pid] = Seen(life.started, life.parent, used, inherited)
        if not life.is_dead:
            look.processes += 1
            look.held.append(held)
            look.queued[pid, life.started] = queued
            if self._tells_delays:
                look.delayed[pid, life.started] = None if queued is None else life.io_delay_seconds

    # --- Summing up -------------------------------------------------------------------------------

    def _cpu(self) -> float:
        """Never less than before: what an heir has inherited is rounded, and a tick may be lost by that."""
        total = self._left.cpu_seconds + sum(seen.used.cpu_seconds for seen in self._seen.values())
        self._cpu_seconds = max(self._cpu_seconds, total)
        return self._cpu_seconds

    def _peak(self, now_bytes: int | None, held: list[Held | None]) -> int | None:
        if now_bytes is None:
            return None
        self._peak_bytes = max(self._peak_bytes, now_bytes, *(h.peak_bytes for h in held if h is not None))
        return self._peak_bytes


def _memory_bytes(held: list[Held | None]) -> int | None:
    private = summed([None if h is None else h.private_bytes for h in held])
    shared = max((h.shared_bytes for h in held if h is not None), default=0)
    return None if private is None else private + shared


def _tells_delays(proc: str) -> bool:
    """Whether the kernel accounts for delays. Where it does not say so, it is not believed."""
    try:
        return whole(f"{proc}/{_DELAYS}").strip() == b"1"
    except (Gone, OSError):
        return False
