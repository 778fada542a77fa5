"""Who has which seats, who is next for them, and who is charged: the books that facts are entered in."""

from collections.abc import Mapping, Sequence

import msgspec

from muster.model.errors import BadInput, IllegalTransition
from muster.model.events import DeviceHealth, Found, NodeHealth, NodeSeen, Seat
from muster.model.job import Job, JobId
from muster.model.node import Health, Node
from muster.model.policy import Policy
from muster.model.resources import NOTHING, Resources
from muster.model.room import Hardware, Room
from muster.model.snapshot import Account, Holder, Running, Tally
from muster.model.tenancy import ROOT, Tenancy
from muster.schedule.shares import brought_to, charged, summed, with_rate
from muster.store.records import Record


class Seats:
    """What follows from who runs, kept in step with it; and what each has been charged so far."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.records: dict[JobId, Record] = {}
        self._nodes: dict[str, Node] = {}
        self._tenancy = Tenancy()
        self._hardware = Hardware(())
        self._room = self._hardware.free_room()
        self._inventory_changed = False
        self._running: dict[JobId, Running] = {}
        self._lined_up: dict[JobId, JobId] = {}  # who has seats, or is lined up itself → who is next for them
        self._held: dict[str, Resources] = {}
        self._accounts: dict[Holder, Account] = {}
        self._active: dict[Holder, int] = {}
        self._arrays: dict[str, int] = {}
        self._tally = Tally()
        self._evicting: dict[JobId, tuple[JobId, ...]] = {}
        self.findings: dict[JobId, tuple[Found, ...]] = {}  # of attempts that are not over
        self._memo: dict[object, object] = {}

    def line_behind(self, job_id: JobId) -> list[Running]:
        """Who is lined up behind a job, the next first."""
        line: list[Running] = []
        follower = self._lined_up.get(job_id)
        while follower is not None:
            running = self.records[follower].running
            assert running is not None
            line.append(running)
            follower = self._lined_up.get(follower)
        return line

    @property
    def lined_up(self) -> Sequence[Running]:
        """Everybody who is lined up."""
        found = (self.records[follower].running for follower in self._lined_up.values())
        return [running for running in found if running is not None]

    # --- Nodes -----------------------------------------------------------------------------------------

    def is_open(self, seats: Sequence[Seat]) -> bool:
        """Whether something new may start there: nothing of it was drained, or is down."""
        return all(_takes_new(self._nodes[seat.node], seat) for seat in seats)

    def _node_seen(self, event: NodeSeen) -> None:
        self._nodes[event.node.name] = event.node
        self._inventory_changed = True

    def _node_health(self, event: NodeHealth) -> None:
        is_up = event.health is Health.UP
        because = "" if is_up else event.because
        node = msgspec.structs.replace(self._known(event.node), health=event.health, because=because)
        self._nodes[node.name] = node
        i = self._hardware.index[node.name]
        self._hardware = self._hardware.with_node(node)
        self._room.is_open[i] = is_up
        self._room.log.nodes.append(i)

    def _device_health(self, event: DeviceHealth) -> None:
        node = self._known(event.node)
        if not 0 <= event.device < len(node.devices):
            raise BadInput(f"node {node.name} has no GPU {event.device}")
        because = "" if event.healthy else event.because
        device = msgspec.structs.replace(node.devices[event.device], healthy=event.healthy, because=because)
        self._nodes[node.name] = node.with_device(event.device, device)
        self._inventory_changed = True

    def _known(self, name: str) -> Node:
        node = self._nodes.get(name)
        if node is None:
            raise BadInput(f"there is no node {name}")
        return node

    # --- Taking and leaving ----------------------------------------------------------------------------

    def _unseat(self, record: Record, now: float) -> Running:
        running = record.running
        assert running is not None
        record.running = None
        self.findings.pop(running.job.id, None)
        self._has_left(running)
        follower = self._lined_up.pop(running.job.id, None)
        if running.behind is not None:
            self._close_up(running.behind, follower)
            return running
        del self._running[running.job.id]
        self._seat(running, -1, now)
        if follower is not None:
            self._take_over(self.records[follower], now)
        return running

    def _check_line(self, behind: JobId) -> None:
        """Whether one can be lined up behind this job."""
        ahead = self.records.get(behind)
        if ahead is None or ahead.running is None or behind in self._lined_up:
            raise IllegalTransition(f"nobody can be lined up behind job {behind}")

    def _close_up(self, ahead: JobId, follower: JobId | None) -> None:
        """Someone has left the line: who came after it is behind whom it was behind."""
        del self._lined_up[ahead]
        if follower is not None:
            self._lined_up[ahead] = follower
            record = self.records[follower]
            assert record.running is not None
            record.running = msgspec.structs.replace(record.running, behind=ahead)

    def _take_over(self, record: Record, now: float) -> None:
        """The seats are free for who was lined up for them."""
        running = record.running
        assert running is not None
        later = now - running.placed_at
        ends = {"expected_end": running.expected_end + later, "latest_end": running.latest_end + later}
        running = msgspec.structs.replace(running, behind=None, placed_at=now, **ends)
        record.running = self._running[running.job.id] = running
        self._seat(running, 1, now)

    def _leaves_for(self, favoured: JobId | None, job_id: JobId) -> None:
        if favoured is not None:
            self._evicting[favoured] = (*self._evicting.get(favoured, ()), job_id)

    def _has_left(self, running: Running) -> None:
        favoured = running.in_favour_of
        if favoured is not None:
            left = tuple(j for j in self._evicting.pop(favoured, ()) if j != running.job.id)
            if left:
                self._evicting[favoured] = left

    def _seat(self, running: Running, sign: int, now: float) -> None:
        """Enter (+1) or strike (-1) what a running job holds, everywhere it counts."""
        self._hold(running, sign)
        if not running.seats:  # nobody has granted it anything yet: only quotas count it
            return
        cost = charged(running.held, running.job.priority, self._policy.charges)
        half_life = self._policy.half_life_seconds
        for holder in self._holders(running.job):
            account = self._accounts.get(holder) or Account(as_of=now)
            self._accounts[holder] = with_rate(brought_to(account, now, half_life), cost, sign)

    def _hold(self, running: Running, sign: int) -> None:
        """The part of it that follows from who runs now, and from nothing before."""
        job = running.job
        for seat in running.seats:
            self._sit(seat, sign)
        self._room.log.forget_before(4 * self._hardware.count + 64)
        self._tally = self._tally.changed(running, sign)
        held = self._held.pop(job.team, NOTHING)
        held = held + running.held if sign > 0 else held - running.held
        if held != NOTHING:
            self._held[job.team] = held
        if job.array is not None:
            count = self._arrays.pop(job.array.array, 0) + sign
            if count:
                self._arrays[job.array.array] = count

    def _holders(self, job: Job) -> list[Holder]:
        """Who is charged for a job: its owner, its team, and the teams above."""
        teams = self._tenancy.path(job.team)
        return [(job.team, job.owner), *((team, None) for team in teams if team != ROOT)]

    def _count(self, job: Job, change: int) -> None:
        for holder in self._holders(job):
            count = self._active.get(holder, 0) + change
            if count:
                self._active[holder] = count
            else:
                self._active.pop(holder, None)

    def _sit(self, seat: Seat, sign: int) -> None:
        node = self._hardware.index[seat.node]
        change = self._room.take if sign > 0 else self._room.give
        devices = [g for g in seat.devices if g < self._hardware.width]  # a node may come back with fewer
        change(node, seat.shape, devices, seat.device_milli)

    def _refresh_inventory(self) -> None:
        """Build the columns anew after nodes came or changed; what runs keeps its seats."""
        if not self._inventory_changed:
            return
        self._inventory_changed = False
        self._hardware = Hardware(tuple(self._nodes.values()))
        self._room = self._hardware.free_room()
        self._memo = {}
        for running in self._running.values():
            for seat in running.seats:
                self._sit(seat, 1)

    def _regroup(self, now: float) -> None:
        """The tree has changed: what teams have and had follows from their owners."""
        owners = [h for h in self._accounts if h[1] is not None]
        accounts: dict[Holder, Account] = {}
        for team, owner in owners:
            mine = brought_to(self._accounts[team, owner], now, self._policy.half_life_seconds)
            accounts[team, owner] = mine
            for name in self._tenancy.path(team)[:-1]:
                accounts[name, None] = summed(accounts.get((name, None)), mine)
        self._accounts = accounts
        self._active = {}
        for record in self.records.values():
            entry = record.waiting or record.running
            if entry is not None:
                self._count(entry.job, 1)

    # --- Looks without a snapshot: valid until the next fact -----------------------------------------

    @property
    def running(self) -> Mapping[JobId, Running]:
        return self._running

    @property
    def nodes(self) -> Mapping[str, Node]:
        return self._nodes

    @property
    def hardware(self) -> Hardware:
        self._refresh_inventory()
        return self._hardware

    @property
    def running_count(self) -> int:
        return len(self._running)


def _takes_new(node: Node, seat: Seat) -> bool:
    there = range(len(node.devices))  # a node may come back with fewer
    return node.health is Health.UP and all(g in there and node.devices[g].healthy for g in seat.devices)


def copied_room(room: Room) -> Room:
    """A copy that goes on with the same log, so that what was remembered about nodes stays good."""
    copy = room.copy()
    copy.log.base = room.log.base
    copy.log.nodes = list(room.log.nodes)
    return copy
