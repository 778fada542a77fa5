"""Speaks to a Muster server: HTTP over its Unix socket, or over TCP with a token.

Only the standard library, and little of it: the command line is a client, and answers at once.

    with muster.Client() as client:
        job = client.submit(["python", "train.py"], gpus=1, memory="8G")
        print(client.wait(job["id"])["outcome"])
"""

import json
import os
import time

from muster.model.errors import BadInput, MusterError
from muster.wire import Connection, NoServer, Refused, address, query

TYPE_CHECKING = False  # typing's own costs milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Self

    from muster.home import Home
    from muster.wire import Answer

    View = dict[str, Any]

__all__ = ["Client", "NoServer", "Refused"]
ENDED = "ENDED"
MOST_FILE_BYTES = 1_000_000
_ANSWER_SECONDS = 60.0
_PATIENCE_SECONDS = 60.0  # how long a wait outlives its server, which may be restarting
_AGAIN_SECONDS = 0.2
_NAMED = {"purpose": "for"}  # Python has that word for itself


class Client:
    """One server, and a connection that is kept. Not to be shared between threads."""

    questions = 0  # that wait for whoever asks, as the last answer to any client of this process had it

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        home: "str | os.PathLike[str] | None" = None,
        timeout_seconds: float = _ANSWER_SECONDS,
    ) -> None:
        self._home = home
        self._address = address(url or (None if home else os.environ.get("MUSTER_URL")), home)
        self._token = token or os.environ.get("MUSTER_TOKEN")
        self._timeout_seconds = timeout_seconds
        self._connection: Connection | None = None

    @property
    def home(self) -> "Home":
        """Where Muster lives on this machine."""
        from muster.home import Home  # noqa: PLC0415 - not needed to ask a question

        return Home(None if self._home is None else os.fspath(self._home))

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self,
        kind: "type[BaseException] | None",
        error: BaseException | None,
        trace: "TracebackType | None",
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def submit(
        self,
        command: "Sequence[str] | None" = None,
        *,
        script: "str | os.PathLike[str] | None" = None,
        yaml: "str | os.PathLike[str] | None" = None,
        args: "Sequence[str]" = (),
        dry_run: bool = False,
        **options: object,
    ) -> "View":
        """Queues a job and returns its view; with ``dry_run`` only what would come of it.

        ``script`` and ``yaml`` are a path to read, or the text itself as a str. Options are the keys of
        application.yaml; ``purpose`` stands for its ``for``.
        """
        body = request_body(options, command=command, script=script, yaml=yaml, args=args)
        return self.post("/jobs?dry_run=true" if dry_run else "/jobs", body)

    def submit_many(self, jobs: "Iterable[Mapping[str, Any]]") -> list[str]:
        """Queues many jobs at once, all or none, and returns their ids.

        Each is what ``submit`` takes, as a mapping: ``{"command": ["python", "eval.py", "7"], "gpus": 1}``.
        """
        where = whereabouts()
        environment = where.pop("environment")
        bodies = [where | _asked(dict(job)) for job in jobs]
        if not bodies:
            return []
        return list(self.post("/submissions", {"jobs": bodies, "environment": environment})["ids"])

    def plan(
        self,
        command: "Sequence[str] | None" = None,
        *,
        script: "str | os.PathLike[str] | None" = None,
        yaml: "str | os.PathLike[str] | None" = None,
        args: "Sequence[str]" = (),
        **options: object,
    ) -> "View":
        """What would happen; changes nothing."""
        body = request_body(options, command=command, script=script, yaml=yaml, args=args)
        return self.post("/plan", body)

    def jobs(self, **filters: object) -> "list[View]":
        """Those that run or wait; ``all=True`` also those that have ended."""
        return list(self.page(**filters)["jobs"])

    def page(self, **filters: object) -> "View":
        """Jobs as the server lists them, and how ``more`` there are."""
        return self.get("/jobs" + query(filters))

    def job(self, job: str) -> "View":
        return self.get(f"/jobs/{_id(job)}")

    def stop(self, job: str, *, because: str | None = None, grace_seconds: float | None = None) -> "View":
        given = {"because": because, "grace_seconds": grace_seconds}
        return self.act(job, "stop", {key: value for key, value in given.items() if value is not None})

    def extend(
        self,
        job: str,
        *,
        because: str,
        budget: str | None = None,
        until: str | None = None,
        time: str | None = None,
    ) -> "View":
        """Another budget (``300 GPUh``, ``+100 GPUh``), date (``+7d``) or time limit (``+2h``); and why."""
        given = {"because": because, "budget": budget, "until": until, "time": time}
        return self.act(job, "extend", {key: value for key, value in given.items() if value is not None})

    def hold(self, job: str) -> "View":
        return self.act(job, "hold")

    def release(self, job: str) -> "View":
        return self.act(job, "release")

    def requeue(self, job: str) -> "View":
        return self.act(job, "requeue")

    def suspend(self, job: str) -> "View":
        return self.act(job, "suspend")

    def resume(self, job: str) -> "View":
        return self.act(job, "resume")

    def take(self, job: str, *, because: str | None = None) -> "View":
        """Answer from now on for a job whose owner has left."""
        return self.act(job, "take", {"because": because} if because else None)

    def adopt(self, job: str, options: "Mapping[str, object]") -> "View":
        """Give a job that others submitted elsewhere a charter, and somebody who answers for it."""
        return self.act(job, "adopt", {"options": {k: v for k, v in options.items() if v is not None}})

    def review(self) -> "View":
        """What consumes, by whom, defended or not; what stops when."""
        return self.get("/review")

    def close_review(self) -> "View":
        """Stops what nobody defends."""
        return self.post("/review/close", {})

    def reviews(self) -> "list[View]":
        """Those that are closed, the latest first."""
        return list(self.get("/reviews")["reviews"])

    def minutes(self, number: int) -> str:
        """Of a review, as Markdown."""
        return str(self.get(f"/reviews/{int(number)}")["minutes"])

    def defend(self, what: str, *, because: str, until: str, **more: object) -> "View":
        """A job, an array or an effort goes on: why, and until when. ``more`` of its charter may change."""
        given = {key: value for key, value in more.items() if value is not None}
        body = {"because": because, "until": until, **given}
        is_job = all(c in "0123456789_[]-," for c in what.removeprefix("s") or what)
        return self.post(f"/jobs/{_id(what)}/defend" if is_job else f"/efforts/{_effort(what)}/defend", body)

    def revive(self, job: str, *, because: str = "", until: str | None = None) -> "View":
        """Brings back what was stopped, as a new job that finds its checkpoints; with a reason, defended."""
        return self.act(job, "revive", {"because": because, "until": until})

    def act(self, job: str, verb: str, body: "Mapping[str, object] | None" = None) -> "View":
        return self.post(f"/jobs/{_id(job)}/{verb}", body or {})

    def report(self, job: str, values: "Mapping[str, object]", step: float | None = None) -> None:
        self.post(f"/jobs/{_id(job)}/report", {"values": dict(values), "step": step})

    def report_many(self, job: str, reports: "Sequence[Mapping[str, object]]") -> None:
        """Each with ``values``, and perhaps ``step`` and ``at``, the time on the wall."""
        self.post(f"/jobs/{_id(job)}/report", {"reports": list(reports)})

    def metrics_of(self, job: str, points: int | None = None) -> "View":
        """What a job has reported, a series for each name."""
        return self.get(f"/jobs/{_id(job)}/metrics{query({'points': points})}")

    def logs(
        self,
        job: str,
        follow: bool = False,
        *,
        offset: int = 0,
        last_bytes: int | None = None,
        attempt: int | None = None,
        part: int | None = None,
    ) -> "Iterator[bytes]":
        """What the job wrote, as it comes; with ``follow`` until the job has ended."""
        since = {"offset": offset or None, "last_bytes": last_bytes}
        asked = query({"follow": follow, **since, "attempt": attempt, "part": part})
        return self._stream(f"/jobs/{_id(job)}/log{asked}")

    def events(self, job: str | None = None) -> "Iterator[View]":
        """Views of jobs, whenever one changes. Never ends by itself."""
        asked = query({"job": job})
        data: list[str] = []
        for line in _lines(self._stream("/events" + asked)):
            if line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif not line and data:
                yield json.loads("\n".join(data))
                data.clear()

    def wait(self, job: str, timeout_seconds: float | None = None) -> "View":
        """The job's view once it has ended. Outlives a restart of the server."""
        until = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        seen_at = time.monotonic()
        while True:
            try:
                for view in self._changes(job, until):
                    if view["state"] == ENDED:
                        return view
                    if until is not None and time.monotonic() >= until:
                        raise MusterError(f"job {job} has not ended within {timeout_seconds:g} s")
                    seen_at = time.monotonic()
            except NoServer:
                if time.monotonic() - seen_at > _PATIENCE_SECONDS:
                    raise
            time.sleep(_AGAIN_SECONDS)

    def _changes(self, job: str, until: float | None) -> "Iterator[View]":
        """The job now, and after each of its changes: listens before it looks, so that none is missed."""
        listener = Connection(self._address, self._token)
        try:
            answer = listener.ask("GET", "/events" + query({"job": str(job)}), None, _left(until))
            self._checked(answer)
            yield self.job(job)
            for line in _lines(answer.chunks()):
                if not line:  # an event is complete
                    yield self.job(job)
                    listener.be_patient(_left(until))
        except TimeoutError:
            yield self.job(job)
        finally:
            listener.close()

    def why(self, job: str) -> "View":
        return self.get(f"/jobs/{_id(job)}/why")

    def where(self, job: str) -> "View":
        """Its rack, node, GPUs and processes."""
        return self.get(f"/jobs/{_id(job)}/where")

    def cost(self, job: str) -> "View":
        """What it has cost so far: held, truly used, and in money where things have a price."""
        return self.get(f"/jobs/{_id(job)}/cost")

    def map(self, **narrowed: object) -> "View":
        """The place and what every GPU does; only a ``rack``, a ``node``, an ``owner``'s, in a ``state``."""
        return self.get("/map" + query(narrowed))

    def top(self, **asked: object) -> "View":
        """One frame for a terminal: the place ``by`` gpu, node or rack in glyphs, and who holds most."""
        return self.get("/top" + query(asked))

    def sparks(self, jobs: "Sequence[str]") -> "View":
        """What these used, hour by hour, in the last day."""
        return self.get("/sparks" + query({"jobs": list(jobs)}))

    def advice(self, *, owner: str | None = None, mine: bool = False) -> "list[View]":
        """Requests that are far from the truth, those that cost most first."""
        return list(self.get("/advice" + query({"owner": owner, "mine": mine or None}))["advice"])

    def use(self, **asked: object) -> "View":
        """Held and used, ``by`` team, owner, effort, job, verdict or gpu, narrowed as the API says."""
        return self.get("/use" + query(asked))

    def hindsight(self, **asked: object) -> "View":
        """Held after an exit would have ended it, by those who held it; asked as ``use`` is."""
        return self.get("/hindsight" + query(asked))

    def use_of(self, job: str, **asked: object) -> "View":
        """What one job used over time, in minutes or hours."""
        return self.get(f"/jobs/{_id(job)}/use{query(asked)}")

    def use_tree(self, **asked: object) -> "View":
        """Held against used as a tree, ``by`` team, owner or purpose."""
        return self.get("/use/tree" + query(asked))

    def use_series(self, **asked: object) -> "View":
        """Held and used over time, ``by`` team or owner."""
        return self.get("/use/series" + query(asked))

    def queue(self, **asked: object) -> "View":
        """Who waits, in the order in which room is offered, and why."""
        return self.get("/queue" + query(asked))

    def timeline(self, **asked: object) -> "View":
        """Who had which node or GPU (``by``), has it now, and will have it."""
        return self.get("/timeline" + query(asked))

    def stack(self, **asked: object) -> "View":
        """What stands on what, of the place, a ``node``, or a ``job`` up to its processes."""
        return self.get("/stack" + query(asked))

    def story(self, job: str) -> "View":
        """What has happened to a job, in lines."""
        return self.get(f"/jobs/{_id(job)}/story")

    def digest(self, user: str | None = None, *, peek: bool = False) -> "View":
        """What needs an answer, and what has happened; with ``peek`` it stays new."""
        return self.get("/digest" + query({"user": user, "peek": peek or None}))

    def settle(self, number: int, because: str = "done") -> "View":
        """A message needs no answer any more."""
        return self.post(f"/messages/{int(number)}/settle", {"because": because})

    def attention(self) -> "list[View]":
        """What people are asked for, one by one."""
        return list(self.get("/attention")["people"])

    def accuracy(self) -> "View":
        return self.get("/accuracy")

    def nodes(self) -> "list[View]":
        return list(self.get("/nodes")["nodes"])

    def drain_node(self, node: str, because: str, device: int | None = None) -> "View":
        """Nothing new starts on the node, or on that GPU of it; what runs goes on."""
        given = {"because": because} if device is None else {"because": because, "device": device}
        return self.post(f"/nodes/{_name(node)}/drain", given)

    def resume_node(self, node: str, device: int | None = None) -> "View":
        """Jobs start there again."""
        return self.post(f"/nodes/{_name(node)}/resume", {} if device is None else {"device": device})

    def efforts(self, **filters: object) -> "list[View]":
        """Those under way; ``all=True`` also those that are closed."""
        return list(self.get("/efforts" + query(filters))["efforts"])

    def effort(self, name: str) -> "View":
        """An effort and its story."""
        return self.get(f"/efforts/{_name(name)}")

    def on_effort(self, name: str, verb: str, body: "View") -> "View":
        """Does something with an effort: note, extend, pause, resume, close."""
        return self.post(f"/efforts/{_name(name)}/{verb}", body)

    def teams(self) -> "list[View]":
        return list(self.get("/teams")["teams"])

    def whoami(self) -> "View":
        return self.get("/whoami")

    def health(self) -> "View":
        return self.get("/health")

    def token(self, user: str, role: str = "user", days: float | None = None) -> str:
        """A new token, which the server tells once and keeps only a hash of."""
        given = {"user": user, "role": role, "days": days}
        said = self.post("/tokens", {key: value for key, value in given.items() if value is not None})
        return str(said["token"])

    def tell_readings(self, told: "Mapping[str, Any]") -> "View":
        """What an agent has read on its node."""
        return self.post("/agent/readings", told)

    def web_link(self) -> "View":
        """Where a browser signs in as you: good once, for minutes."""
        return self.post("/web", {})

    def down(self) -> "View":
        """Ends the server; its jobs go on."""
        return self.post("/down", {})

    def get(self, path: str) -> "View":
        return self._json("GET", path, None)

    def post(self, path: str, body: object) -> "View":
        return self._json("POST", path, json.dumps(body).encode())

    def _json(self, method: str, path: str, body: bytes | None) -> "View":
        if self._connection is None:
            self._connection = Connection(self._address, self._token)
        try:
            answer = self._connection.ask(method, path, body, self._timeout_seconds)
            text = b"".join(answer.chunks())
        except TimeoutError:
            self.close()
            raise MusterError(
                f"the Muster server at {self._address} has not answered within {self._timeout_seconds:g} s"
            ) from None
        except BaseException:
            self.close()  # whatever is left of the answer is not that of the next question
            raise
        Client.questions = answer.questions
        return _understood(answer.status, text, str(self._address))

    def _stream(self, path: str) -> "Iterator[bytes]":
        """An answer without end has a connection of its own."""
        connection = Connection(self._address, self._token)
        try:
            yield from self._checked(connection.ask("GET", path, None, None)).chunks()
        finally:
            connection.close()

    def _checked(self, answer: "Answer") -> "Answer":
        if answer.status >= 300:
            _understood(answer.status, b"".join(answer.chunks()), str(self._address))
        return answer


def request_body(options: "Mapping[str, object]", **asked: "Any") -> "View":
    """What is sent to submit a job, from here; see ``asked_body``."""
    return whereabouts() | asked_body(options, **asked)


def whereabouts() -> "View":
    """What is the same for all that is submitted from here: this folder, environment and umask."""
    environment = {k: v for k, v in os.environ.items() if is_text(k + v)}
    return {"cwd": _cwd(), "environment": environment, "umask": _umask()}


def asked_body(
    options: "Mapping[str, object]",
    *,
    command: "Sequence[str] | None" = None,
    script: "str | os.PathLike[str] | None" = None,
    yaml: "str | os.PathLike[str] | None" = None,
    args: "Sequence[str]" = (),
) -> "View":
    """What is asked for, wherever that is."""
    body: View = {
        "options": {_NAMED.get(key, key): value for key, value in options.items() if value is not None},
        "args": list(args),
    }
    if command is not None:
        body["command"] = [command] if isinstance(command, str) else list(command)
    for key, given in (("script", script), ("yaml", yaml)):
        if given is not None:
            body |= _text_of(key, given)
    return body


def _asked(job: "dict[str, Any]") -> "View":
    sources = {key: job.pop(key, None) for key in ("command", "script", "yaml")}
    return asked_body(job, args=job.pop("args", ()), **sources)


def _text_of(key: str, given: "str | os.PathLike[str]") -> dict[str, str]:
    """A path is read; a str is the text itself."""
    if isinstance(given, str):
        return {key: given}
    return {key: read_text(given), f"{key}_name": os.path.basename(given)}


def read_text(path: "str | os.PathLike[str]") -> str:
    """A small file of text, or a sentence why it is none."""
    path = os.fspath(path)
    try:
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as file:
            found = file.read(MOST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{path} can't be read: {why}") from None
    if len(found) > MOST_FILE_BYTES:
        raise BadInput(f"{path} is larger than a megabyte; what describes a job is short")
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not text in UTF-8") from None


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise BadInput("the current folder is gone; change to one that exists") from None


def _umask() -> int:
    """As the kernel tells it; asking with os.umask would change it for a moment, for all threads."""
    with open("/proc/self/status", encoding="utf-8", errors="replace") as status:
        return next((int(line.split()[1], 8) for line in status if line.startswith("Umask:")), 0o022)


def is_text(text: str) -> bool:
    """Bytes that are no UTF-8 come as lone surrogates, which JSON can't carry."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _id(job: str) -> str:
    """An id that is safe in a path; ints are welcome, and so are several members (12_[1-3,7])."""
    text = str(job)
    if not text or not all(c.isascii() and (c.isalnum() or c in "_-[],") for c in text):
        raise BadInput(f"{text!r} is not a job's id; 'muster ps' shows them, such as 12 or 12_3")
    return text.replace("[", "%5B").replace("]", "%5D")


def _name(node: str) -> str:
    if not node or not all(c.isascii() and (c.isalnum() or c in "_-.") for c in node):
        raise BadInput(f"{node!r} is not a node's name; 'muster node' shows them")
    return node


def _effort(name: str) -> str:
    """A name that is safe in a path, whatever letters it has."""
    if not name or not name.isprintable() or "/" in name:
        raise BadInput(f"{name!r} is not an effort's name; 'muster effort ls' shows them")
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-.") else _escaped(c) for c in name)


def _escaped(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode())


def _understood(status: int, text: bytes, where: str) -> "View":
    try:
        said = json.loads(text) if text else {}
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise MusterError(f"what answers at {where} does not speak like a Muster server (status {status})")
    if status >= 300:
        sentence = str(said.get("error") or f"the server refused, with status {status}")
        raise Refused(sentence, status, int(said.get("exit_code") or 1))
    return said


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.001, until - time.monotonic())


def _lines(chunks: "Iterator[bytes]") -> "Iterator[str]":
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode(errors="replace")
