"""Handing over: orders wait here until Slurm has taken them, a few at a time, for as long as that takes.

A controller that does not answer loses nothing: the order stays, and is tried again at growing intervals. But
what was tried and not answered may have been done. So an order waits for a *pass* over Slurm's queue and
accounting that began after the try, and is tried again only if that has not found it. The first orders of a
server wait for its first pass in the same way: the server before may have been killed in the middle.
"""

import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from muster.engines.base import Key
from muster.engines.local import logs
from muster.engines.local.logs import Folder, log_name
from muster.engines.local.spawn import CANT_EXECUTE, NotStarted, person
from muster.engines.slurm.books import Books
from muster.engines.slurm.client import Slurm
from muster.engines.slurm.errors import Denied, Refused, SlurmError
from muster.engines.slurm.life import Life
from muster.engines.slurm.notices import Notices
from muster.home import Home
from muster.model.errors import BadInput
from muster.model.events import Exited, Outcome
from muster.model.job import Job
from muster.model.plan import Start

log = logging.getLogger("muster")

AT_ONCE = 4  # a controller answers several as quickly as one
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 30.0
_LATER = ("submit limit", "temporarily", "try again")  # no more jobs now, but the job is good


class Order:
    """An attempt that is to be handed over, and when it may be."""

    def __init__(self, life: Life, job: Job, start: Start, after_pass: int) -> None:
        self.life, self.job, self.start, self.after_pass = life, job, start, after_pass
        self.tries = 0
        self.due = 0.0  # in monotonic time
        self.in_flight = False


class Desk:
    """``written`` says what sbatch is given for a start; it is asked when a pass has seen the cluster."""

    def __init__(
        self,
        books: Books,
        slurm: Slurm,
        home: Home,
        written: Callable[[Job, Start], tuple[tuple[str, ...], str]],
        changed: Callable[[], None],
    ) -> None:
        self._books, self._slurm, self._home = books, slurm, home
        self._written, self._changed = written, changed
        self.orders: dict[Key, Order] = {}
        self.next_pass = 1  # the first that has not begun yet
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="sbatch")

    def order(self, order: Order) -> None:
        self.orders[order.life.key] = order

    def give_ready(self, passes: int) -> float | None:
        """Send off what may go; when the next may, in monotonic time. Called with the lock held."""
        now = time.monotonic()
        waiting = [one for one in self.orders.values() if not one.in_flight and passes >= one.after_pass]
        for one in waiting:
            if one.due <= now:
                one.in_flight = True
                self._pool.submit(self._hand_over, one)
        return min((one.due for one in waiting if one.due > now), default=None)

    def may_be_in_slurm(self, key: Key, passes: int) -> bool:
        """Whether somebody may have handed it over, without our knowing its number yet."""
        order = self.orders.get(key)
        if order is None:
            return not passes
        return order.in_flight or passes < order.after_pass

    @property
    def notices(self) -> Notices:
        return self._slurm.notices

    def close(self) -> None:
        """What is in flight is finished: so that its number is known."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    # --- In a thread of the pool ---

    def _hand_over(self, order: Order) -> None:
        with self._books.lock:
            if order.life.told is not None or self.orders.get(order.life.key) is not order:
                order.in_flight = False  # it is not wanted any more: who follows it sees to the rest
                return
        try:
            self._prepare(order)
            number = self._slurm.submit(*self._written(order.job, order.start))
        except (Refused, Denied, BadInput, NotStarted, OSError) as error:
            self._refused(order, error)
        except SlurmError as error:
            self._again(order, error)
        except Exception:
            log.exception("job %s could not be handed to Slurm", order.job.id)
            self._refused(order, SlurmError("it could not be handed to Slurm: see the server's log"))
        else:
            with self._books.lock:
                del self.orders[order.life.key]
                self._books.has_id(order.life, number)
        self._changed()

    def _prepare(self, order: Order) -> None:
        """Its folder and logs, before Slurm writes there as the job's user."""
        job, (_, attempt) = order.job, order.life.key
        run = job.run
        assert run is not None
        owner = person(run.user)
        folder = Folder(str(self._home.logs), job.id, owner)
        with folder.opened():
            pass
        if run.script is not None:
            folder.write(f"{attempt}.script", run.script, 0o700)
        if job.checkpoint is not None:
            Folder(str(self._home.logs), job.revives or job.id, owner).make("checkpoint")
        if order.tries == 0:
            for part in range(job.gang.size):
                os.close(logs.new(self._log(order, part), run.log_bytes, owner).descriptor)

    def _log(self, order: Order, part: int) -> str:
        return f"{self._home.logs}/{log_name(*order.life.key, part, order.job.gang.size)}"

    def _again(self, order: Order, error: SlurmError) -> None:
        with self._books.lock:
            wait = min(_FIRST_WAIT_SECONDS * 2**order.tries, _LONGEST_WAIT_SECONDS)
            order.tries += 1
            order.in_flight, order.due = False, time.monotonic() + wait
            order.after_pass = self.next_pass
        level = logging.WARNING if order.tries == 1 else logging.DEBUG
        log.log(level, "job %s is not handed over yet: %s", order.job.id, error)

    def _refused(self, order: Order, error: Exception) -> None:
        """Slurm takes no such job; unless it only takes no more of them now."""
        if isinstance(error, SlurmError) and any(words in str(error).lower() for words in _LATER):
            self._again(order, error)
            return
        with open(self._log(order, 0), "a", encoding="utf-8") as file:
            file.write(f"muster: {error}\n")
        with self._books.lock:
            life = order.life
            del self.orders[life.key]
            life.is_over = life.has_exited = True
            self._books.tell([Exited(self._books.clock.now(), *life.key, Outcome.FAILED, CANT_EXECUTE)])
