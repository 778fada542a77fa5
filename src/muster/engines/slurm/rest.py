"""A cluster, as slurmrestd shows it: the other way to Slurm than its commands.

What an interface can't do goes by command where the commands are, and is said in one sentence where they are
not: use (``sstat``), suspending, scripts, the topology, KillWait in all; in 22.05 also draining, a signal to
the steps alone, how scripts ended in accounting, and some options of sbatch.

slurmrestd acts as its own user on a socket, or as the token's: that is to be the user of this Muster, whose
jobs they are to be. Root's token speaks for everybody.

A hand-over is as careful as by sbatch: what broke off is looked up by its mark before it is tried again. But
nothing holds the next server back, as a running sbatch does, if this one is killed in the middle of an order
that slurmrestd carries out later; should that lead to two jobs under one mark, the second does nothing.
"""

import contextlib
import logging
import os
import pwd
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from urllib.parse import quote

from muster.engines.slurm import jobs, nodes, rest_read
from muster.engines.slurm.answers import (
    SlurmAttempt,
    SlurmJob,
    SlurmNode,
    SlurmPartition,
    SlurmReservation,
    SlurmUse,
)
from muster.engines.slurm.client import (
    LEVELS,
    check_may_order,
    checked_ids,
    checked_node,
    checked_signal,
    environment,
    whole_minutes,
)
from muster.engines.slurm.commands import Commands
from muster.engines.slurm.errors import (
    AccountingDown,
    BadConfiguration,
    Denied,
    NotAuthenticated,
    NotInstalled,
    Refused,
    SlurmError,
    UnknownJob,
    Unreachable,
)
from muster.engines.slurm.rest_api import Api, read_api
from muster.engines.slurm.rest_job import Unsayable, job_of
from muster.engines.slurm.rest_line import Answer, Line
from muster.engines.slurm.rest_token import claims
from muster.model.usage import AtEnd

log = logging.getLogger("muster")

_KILL_WAIT_SECONDS = 30.0  # as Slurm has it where nobody has set it
_NAMES = 250  # in one question: they are part of its address
_GONE = ("already complet", "already finish")
_OK, _NOT_THERE = 200, 404
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_ABSENT = (NotInstalled, BadConfiguration, NotAuthenticated)
_OWNER = "--uid="
_EARLIEST = 1_000_000  # no number below is taken for seconds since 1970


class Rest:
    """``commands`` is who does what slurmrestd can't."""

    def __init__(self, line: Line, commands: Commands) -> None:
        self._line, self._commands = line, commands
        self.notices, self.read_only = commands.notices, commands.read_only
        self._queue = jobs.Queue(self.notices)
        self._found: Api | None = None

    @property
    def way(self) -> str:
        return f"slurmrestd at {self._line.place}"

    def ready(self) -> None:
        """The token is there, kept well and this user's. Whether slurmrestd is up, the first pass tells."""
        log.warning("Slurm is reached by %s", self.way)
        token = self._line.tokens.read()
        place = self._line.place
        if token is None:
            if place.scheme != "unix":
                raise BadConfiguration(
                    f"slurmrestd at {place} wants a token: write one with `scontrol token` into a file, and "
                    "name it in rest_token of [slurm]"
                )
            return
        if place.scheme == "http" and place.host not in _LOOPBACK:
            self.notices.say(f"the token for slurmrestd goes over the net as it is: use https, not {place}")
        self._check_user(claims(token).sun, f"the token of {self._line.tokens.source} is for")

    def close(self) -> None:
        self._line.close()

    # --- Questions ---

    def jobs(self) -> tuple[SlurmJob, ...]:
        return self._queue.read(self._asked("/slurm/jobs"))

    def nodes(self) -> tuple[SlurmNode, ...]:
        return nodes.read_nodes(self._asked("/slurm/nodes"), self.notices)

    def partitions(self) -> tuple[SlurmPartition, ...]:
        return rest_read.read_partitions(self._asked("/slurm/partitions"), self.notices)

    def reservations(self) -> tuple[SlurmReservation, ...]:
        return rest_read.read_reservations(self._asked("/slurm/reservations"), self.notices)

    def attempts(self, since: float) -> tuple[SlurmAttempt, ...]:
        api = self._api()
        if api.is_old:
            with contextlib.suppress(NotInstalled):
                return self._commands.attempts(since)
            self.notices.say(
                "slurmrestd of Slurm 22.05 does not tell from accounting with which code a job ended, and "
                "there is no sacct here that does: it is unknown of jobs that have left the queue"
            )
        body = self._asked("/slurmdb/jobs", **_window(since, api))
        return rest_read.read_attempts(body, self.notices, exits_are_told=not api.is_old)

    def named(self, names: Iterable[str], since: float) -> tuple[tuple[int, str, str], ...]:
        rest = iter(names)
        found: list[SlurmAttempt] = []
        while some := list(islice(rest, _NAMES)):
            query = {**_window(since, self._api()), "job_name": ",".join(some)}
            found += rest_read.read_attempts(
                self._asked("/slurmdb/jobs", **query), self.notices, exits_are_told=False
            )
        return tuple((one.job, one.user, one.name or "") for one in found)

    def use(self, ids: Iterable[int]) -> tuple[SlurmUse, ...]:
        with self._by_command("tell what running jobs use", "sstat"):
            return self._commands.use(ids)

    def spent(self, ids: Iterable[int]) -> dict[int, AtEnd]:
        with self._by_command("tell what jobs have used that are over", "sacct"):
            return self._commands.spent(ids)

    def topology(self) -> str:
        try:
            return self._commands.topology()
        except _ABSENT:
            self.notices.say(
                "slurmrestd does not tell which nodes are near to which, and no command here does: "
                "a layout can (docs: lay out a site)"
            )
            return ""

    def script(self, job: int | str) -> str | None:
        try:
            return self._commands.script(job)
        except _ABSENT:
            self.notices.say(
                "slurmrestd does not give out scripts, and no command here does: "
                "#MUSTER lines in scripts of sbatch are not read"
            )
            return None

    def is_operator(self) -> bool | None:
        try:
            user = self._user()
            if user == "root":
                return True
            body = self._asked(f"/slurmdb/user/{quote(user, safe='')}")
        except SlurmError:
            return None
        return not set(LEVELS).isdisjoint(rest_read.read_level(body))

    def kill_wait_seconds(self) -> float:
        try:
            return self._commands.kill_wait_seconds()
        except _ABSENT:
            self.notices.say(
                "slurmrestd does not tell KillWait, and no command here does: "
                f"taken for {_KILL_WAIT_SECONDS:g} s, which is Slurm's own"
            )
            return _KILL_WAIT_SECONDS

    def would_start(self, options: Sequence[str], script: str) -> float | None:
        with self._by_command("tell when a job would start", "sbatch"):
            return self._commands.would_start(options, script)

    # --- Orders ---

    def submit(self, options: Sequence[str], script: str) -> int:
        check_may_order("sbatch", read_only=self.read_only)
        api = self._api()
        try:
            user, said = self._owner(options)
            job = job_of(said, script, environment(None), api)
        except Unsayable as left:
            return self._submit_by_command(options, script, left.option)
        answer = self._line.order("POST", api.path("/slurm/job/submit"), body=job, user=user)
        number = rest_read.read_submitted(answer.body) if answer.status == _OK else None
        if number is None:
            raise self._refusal(answer)
        return number

    def _submit_by_command(self, options: Sequence[str], script: str, left: str) -> int:
        try:
            return self._commands.submit(options, script)
        except NotInstalled:
            raise Refused(
                f"slurmrestd has no word for {left.partition('=')[0]}, and there is no sbatch here: "
                "do without it, or run Muster where Slurm's commands are"
            ) from None

    def _owner(self, options: Sequence[str]) -> tuple[str | None, list[str]]:
        """Whose job it is to be, if another's: only a token can speak for others."""
        owners = [one for one in options if one.startswith(_OWNER)]
        if owners and self._line.tokens.read() is None and owners[-1] != f"{_OWNER}{self._user()}":
            raise Unsayable(owners[-1])
        said = [one for one in options if not one.startswith(_OWNER)]
        return (owners[-1].removeprefix(_OWNER) if owners else None), said

    def limit(self, job: int, seconds: float | None) -> None:
        (listed,) = checked_ids([job])
        minutes = None if seconds is None else whole_minutes(seconds)
        said: object = "UNLIMITED" if minutes is None else minutes
        if not self._api().is_old:
            said = {"set": True, "infinite": minutes is None, "number": minutes or 0}
        self._ordered("POST", f"/slurm/job/{listed}", body={"time_limit": said})

    def cancel(
        self, ids: Iterable[int | str], *, signal: str | None = None, steps_only: bool = False
    ) -> None:
        """One by one. What stands in the way of some is told when all were tried."""
        listed = checked_ids(ids)
        if listed and signal is not None and steps_only and self._api().is_old:
            check_may_order("scancel", read_only=self.read_only)
            with self._by_command("send a signal to the steps of a job alone", "scancel"):
                self._commands.cancel(listed, signal=signal, steps_only=True)
            return
        query = {} if signal is None or not listed else self._signalled(signal, steps_only=steps_only)
        refusals = [found for one in listed if (found := self._cancelled(one, query)) is not None]
        if refusals:
            raise refusals[0]

    def _signalled(self, signal: str, *, steps_only: bool) -> dict[str, str]:
        """22.05 signals all of it, whatever is said."""
        to_all = {} if steps_only or self._api().is_old else {"flags": "FULL_JOB"}
        return {"signal": checked_signal(signal), **to_all}

    def _cancelled(self, job: str, query: dict[str, str]) -> SlurmError | None:
        """Why not; one that is over is."""
        try:
            self._ordered("DELETE", f"/slurm/job/{quote(job, safe='')}", query)
        except UnknownJob:
            return None
        except (Refused, Denied) as refused:
            return None if any(words in str(refused).lower() for words in _GONE) else refused
        return None

    def control(self, verb: str, ids: Iterable[int | str]) -> None:
        check_may_order(f"scontrol {verb}", read_only=self.read_only)
        with self._by_command(f"{verb} a job", "scontrol"):
            self._commands.control(verb, ids)

    def drain(self, node: str, because: str) -> None:
        if self._changes_nodes():
            said = {"state": ["DRAIN"], "reason": because}
            self._ordered("POST", f"/slurm/node/{checked_node(node)}", body=said)
            return
        with self._by_command("drain a node", "scontrol"):
            self._commands.drain(node, because)

    def undrain(self, node: str) -> None:
        if self._changes_nodes():
            self._ordered("POST", f"/slurm/node/{checked_node(node)}", body={"state": ["RESUME"]})
            return
        with self._by_command("resume a node", "scontrol"):
            self._commands.undrain(node)

    def _changes_nodes(self) -> bool:
        check_may_order("scontrol update", read_only=self.read_only)
        return "POST /slurm/node/{}" in self._api().does

    # --- Calling ---

    def _api(self) -> Api:
        """Found once, and anew when slurmrestd has become another."""
        if self._found is None:
            answer = self._line.ask("/openapi/v3")
            if answer.status != _OK:
                raise self._refusal(answer)
            if self._line.tokens.read() is None:
                self._check_user(self._user(), f"{self.way} acts for")
            self._found = read_api(answer.body)
        return self._found

    def _asked(self, of: str, **query: str) -> bytes:
        api = self._api()
        if of.startswith("/slurmdb/") and "GET /slurmdb/jobs" not in api.does:
            raise AccountingDown(f"{self.way} offers no accounting: start it with its slurmdb interface, too")
        answer = self._line.ask(api.path(of), query)
        if answer.status != _OK:
            raise self._refusal(answer)
        return answer.body

    def _ordered(
        self, method: str, of: str, query: dict[str, str] | None = None, body: object = None
    ) -> None:
        check_may_order(f"{method} {of}", read_only=self.read_only)
        answer = self._line.order(method, self._api().path(of), query, body)
        if answer.status != _OK:
            raise self._refusal(answer)

    def _refusal(self, answer: Answer) -> SlurmError:
        if answer.status == _NOT_THERE:
            self._found = None
            return Unreachable(f"{self.way} has become another than it was; it is asked again what it offers")
        return rest_read.read_refusal(answer.status, answer.body)

    @contextlib.contextmanager
    def _by_command(self, what: str, command: str) -> Iterator[None]:
        try:
            yield
        except NotInstalled:
            raise NotInstalled(
                f"slurmrestd can't {what}, and there is no command {command} here that can: "
                "run Muster where Slurm's commands are"
            ) from None

    # --- Who we are to Slurm ---

    def _user(self) -> str:
        """As whom slurmrestd acts for us."""
        token = self._line.tokens.read()
        named = claims(token).sun if token else None
        return named or _name_of(self._line.user_id())

    def _check_user(self, user: str | None, because: str) -> None:
        """What is handed over as another user could neither be written nor be found again."""
        own = _name_of(None)
        if user is not None and user != own and not self.read_only:
            raise BadConfiguration(
                f"{because} {user}, and this Muster runs as {own}: let both be of one user, or only observe"
            )


def _name_of(number: int | None) -> str:
    number = os.geteuid() if number is None else number
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _window(since: float, api: Api) -> dict[str, str]:
    """In seconds since 1970: another form is read in slurmrestd's own zone. 22.05 lists every try anyway."""
    wanted = {} if api.is_old else {"show_duplicates": "true", "skip_steps": "true"}
    kept = {name: value for name, value in wanted.items() if name in api.filters}
    return {"start_time": f"uts{int(max(_EARLIEST, since))}", **kept}
