"""Those who have ended are counted once, whoever waited for them or not; and counters never fall."""

from hypothesis import given
from hypothesis import strategies as st

from muster.monitor.meters import lives
from muster.monitor.meters.lives import Seen, Used
from muster.monitor.meters.shown import Longest, Rising, Shown


def _seen(parent: int, own: float, inherited: float = 0.0, *, started: int = 1, read: int = 0) -> Seen:
    return Seen(started, parent, Used(own + inherited, read, 0), Used(inherited, read, 0))


def test_who_was_waited_for_is_counted_with_its_parent() -> None:
    before = {1: _seen(0, 1.0), 2: _seen(1, 5.0, read=70)}
    now = {1: _seen(0, 1.0, inherited=6.0, read=90)}
    assert lives.left_behind(before, now) == (0.0, 0, 0)


def test_who_was_not_waited_for_leaves_what_it_had() -> None:
    before = {1: _seen(0, 1.0), 2: _seen(1, 5.0, read=70)}
    assert lives.left_behind(before, {1: _seen(0, 1.0)}) == (5.0, 70, 0)


def test_the_main_process_leaves_what_it_had() -> None:
    before = {1: _seen(0, 1.0, inherited=2.0), 2: _seen(1, 5.0)}
    assert lives.left_behind(before, {2: _seen(1, 5.0)}).cpu_seconds == 3.0


def test_a_whole_branch_is_inherited_by_the_nearest_that_lives() -> None:
    before = {1: _seen(0, 1.0), 2: _seen(1, 2.0), 3: _seen(2, 4.0)}
    assert lives.left_behind(before, {1: _seen(0, 1.0, inherited=6.5)}).cpu_seconds == 0.0
    assert lives.left_behind(before, {1: _seen(0, 1.0, inherited=2.0)}).cpu_seconds == 4.0


def test_a_number_that_is_used_again_is_another_process() -> None:
    before = {1: _seen(0, 1.0), 2: _seen(1, 5.0, started=10)}
    now = {1: _seen(0, 1.0), 2: _seen(1, 0.5, started=90)}
    assert lives.ended(before, now) == {2}
    assert lives.left_behind(before, now).cpu_seconds == 5.0


def test_a_tick_that_is_lost_by_rounding_is_not_kept_twice() -> None:
    before = {1: _seen(0, 1.0), 2: _seen(1, 5.0)}
    now = {1: _seen(0, 1.0, inherited=5.0 - 2 / lives.TICKS)}
    assert lives.left_behind(before, now).cpu_seconds == 0.0


def test_parents_that_go_round_in_a_circle_do_no_harm() -> None:
    before = {1: _seen(2, 1.0), 2: _seen(1, 2.0)}
    assert lives.left_behind(before, {}).cpu_seconds == 3.0


# --- A tree that is known -------------------------------------------------------------------------


class _World:
    """Processes as the kernel accounts for them; 1 is the main one, and its parent is not of the tree."""

    def __init__(self) -> None:
        self.living: dict[int, Seen] = {1: _seen(0, 0.0)}
        self.truth = 0.0  # used by all
        self._next = 2

    def fork(self, parent: int) -> None:
        self.living[self._next] = _seen(parent, 0.0, started=self._next)
        self._next += 1

    def work(self, pid: int) -> None:
        seen = self.living[pid]
        self.living[pid] = seen._replace(used=Used(seen.used.cpu_seconds + 1.0, 0, 0))
        self.truth += 1.0

    def end(self, pid: int, *, waited: bool) -> None:
        seen = self.living.pop(pid)
        heir = self.living.get(seen.parent)
        if waited and heir is not None:
            inherited = heir.inherited.cpu_seconds + seen.used.cpu_seconds
            used = heir.used.cpu_seconds + seen.used.cpu_seconds
            self.living[seen.parent] = heir._replace(used=Used(used, 0, 0), inherited=Used(inherited, 0, 0))
        for child, orphan in self.living.items():
            if orphan.parent == pid:
                self.living[child] = orphan._replace(parent=0)


class _Books:
    """What a meter makes of it, look by look."""

    def __init__(self) -> None:
        self._seen: dict[int, Seen] = {}
        self._left = 0.0

    def look(self, world: _World) -> float:
        now = dict(world.living)
        self._left += lives.left_behind(self._seen, now).cpu_seconds
        self._seen = now
        return self._left + sum(seen.used.cpu_seconds for seen in now.values())


_STEPS = st.lists(
    st.tuples(st.sampled_from(["fork", "work", "work", "end", "look"]), st.integers(0, 9)), max_size=60
)


def _step(world: _World, step: str, choice: int, *, waited: bool) -> None:
    pid = sorted(world.living)[choice % len(world.living)]
    if step == "fork":
        world.fork(pid)
    elif step == "work":
        world.work(pid)
    elif step == "end" and pid != 1:
        world.end(pid, waited=waited)


@given(_STEPS, st.lists(st.booleans(), min_size=60, max_size=60))
def test_the_sum_never_falls_and_is_never_more_than_was_used(
    steps: list[tuple[str, int]], waits: list[bool]
) -> None:
    world, books, last = _World(), _Books(), 0.0
    for (step, choice), waited in zip(steps, waits, strict=False):
        _step(world, step, choice, waited=waited)
        if step == "look":
            total = books.look(world)
            assert last <= total <= world.truth
            last = total


@given(_STEPS)
def test_the_sum_is_what_was_used_if_it_is_looked_at_before_each_end(steps: list[tuple[str, int]]) -> None:
    """Then nothing is missed, whether they are waited for or not."""
    world, books = _World(), _Books()
    for number, (step, choice) in enumerate(steps):
        books.look(world)
        _step(world, step, choice, waited=number % 2 == 0)
        assert books.look(world) == world.truth


# --- Waits and lies -------------------------------------------------------------------------------


def test_of_waits_the_longest_counts_from_look_to_look() -> None:
    longest = Longest()
    assert longest.add({"a": 1.0, "b": 3.0}) == 3.0
    assert longest.add({"a": 5.0, "b": 4.0}) == 7.0
    assert longest.add({"a": 5.5, "b": None}) is None
    assert longest.add({"a": 5.5, "b": 5.0}) == 8.5
    assert longest.add({}) == 8.5
    assert longest.add({"a": 0.25}) == 8.75  # another by that name


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.none() | st.floats(0, 100))))
def test_waits_never_fall(looks: list[dict[str, float | None]]) -> None:
    longest, last = Longest(), 0.0
    for look in looks:
        seconds = longest.add(dict(look))
        assert seconds is None or seconds >= last
        last = last if seconds is None else seconds


def test_a_counter_that_falls_is_not_believed_until_it_has_caught_up() -> None:
    rising = Rising()
    looks = [5.0, 4.0, None, 5.0, 6.0]
    shown = [rising.checked(Shown(cpu_seconds=look, memory_bytes=1)).cpu_seconds for look in looks]
    assert shown == [5.0, None, None, 5.0, 6.0]


def test_what_has_ended_holds_nothing_and_keeps_its_counters() -> None:
    rising = Rising()
    assert rising.after_the_end() == Shown()
    rising.checked(Shown(cpu_seconds=5.0, memory_bytes=7, memory_peak_bytes=9, processes=3))
    ended = Shown(cpu_seconds=5.0, memory_bytes=0, memory_peak_bytes=9, processes=0)
    assert rising.after_the_end() == ended
