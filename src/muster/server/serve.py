"""Putting the server together and running it: store, engine, service, API, in one process.

The order matters. The store's lock comes first, so that a second server on the same state goes no further;
then what was written down is folded, the engine's keeper is found or started, and what it tells of the time
in between is taken in. Only then does the socket answer.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime

import msgspec
import numpy as np
import uvicorn
import uvloop

from muster.home import Home
from muster.model.errors import BadInput, MusterError
from muster.model.job import Job, JobId
from muster.server.agents import agent_table
from muster.server.commands import Commands
from muster.server.config import BadConfig, Watcher, changes, teams_to_set
from muster.server.config_tables import Config
from muster.server.config_values import HERE, Address
from muster.server.endings import Endings
from muster.server.errors import NotFound
from muster.server.footing import Footing, LocalFooting, settle
from muster.server.http import App
from muster.server.identity import Identity, PeerProtocol, own_name
from muster.server.inventory import Place
from muster.server.metering import Metering
from muster.server.pages import Asgi, Front, Ground, NoPages, Pages
from muster.server.people import Directory, Person, person
from muster.server.reports import Reports
from muster.server.routes import Routes
from muster.server.seeing.routes import SeeingRoutes
from muster.server.seeing.seeing import Seeing
from muster.server.seeing.table import seeing_table
from muster.server.service import Service
from muster.server.slurm_footing import SlurmFooting
from muster.server.stewardship.steward import Steward
from muster.server.trackers import makers
from muster.server.watching import Watching
from muster.server.when import When
from muster.store.fold import Fold
from muster.store.image import fold_from
from muster.store.journal import Journal

log = logging.getLogger("muster")

_LOOK_SECONDS = 2.0
_BACKLOG = 1024

MakePages = Callable[[Ground], Pages]


class Settings(msgspec.Struct, frozen=True):
    """What the command line says; it overrules the configuration."""

    http: Address | msgspec.UnsetType | None = msgspec.UNSET
    store: str | None = None
    engine: str | None = None
    observe: bool = False


def serve(
    home: Home,
    config: Config,
    settings: Settings,
    ready: Callable[[str], None],
    *,
    footing: Footing | None = None,
    pages: MakePages = NoPages,
) -> None:
    """Run until told to stop. ``ready`` is called once it answers. Without a footing, as configured."""
    home.make()
    overruled(config, settings)  # before anything is made, if it makes no sense
    store = settings.store or config.server.store or f"sqlite:///{home.database}"
    journal = Journal.open(store)
    for note in journal.notes:
        log.warning("%s", note)
    fold = _folded(journal, config)
    if footing is None:
        config_now = overruled(config, settings)
        settle(home, config_now.engine.kind, fold)
        footing = _footing(config_now)
    server = _Server(home, config, settings, journal, fold, store.partition(":")[0], footing, pages)
    gc.freeze()  # what was folded stays: there is no use in looking through it again and again
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(server.run(ready))


def overruled(config: Config, settings: Settings) -> Config:
    """With the engine that the command line has chosen."""
    replace = msgspec.structs.replace
    if settings.engine is not None:
        config = replace(config, engine=replace(config.engine, kind=settings.engine))
    if settings.observe and config.engine.kind != "slurm":
        raise BadInput(
            "--observe goes with --engine slurm: on one machine there is nobody else's queue to see"
        )
    return replace(config, slurm=replace(config.slurm, observe=True)) if settings.observe else config


def _footing(config: Config) -> Footing:
    return SlurmFooting(config) if config.engine.kind == "slurm" else LocalFooting(config)


def _folded(journal: Journal, config: Config) -> Fold:
    image, events = journal.load()
    policy, remembers = config.policy(), config.server.remembers
    fold = Fold(policy, remembers=remembers) if image is None else fold_from(image, policy, remembers)
    for event in events:
        fold.apply(event)
    return fold


class _Server:
    def __init__(
        self,
        home: Home,
        config: Config,
        settings: Settings,
        journal: Journal,
        fold: Fold,
        store: str,
        footing: Footing,
        pages: MakePages,
    ) -> None:
        self._home, self._settings, self._footing, self._make_pages = home, settings, footing, pages
        self._config = overruled(config, settings)
        self._journal, self._fold, self._store = journal, fold, store
        self._watcher = Watcher(home.configuration, config)

    async def run(self, ready: Callable[[str], None]) -> None:
        engine = self._footing.engine(self._home, self._find, self._environment, self._fold.now)
        service = self._service = Service(
            self._home, self._config.policy(), self._fold, self._journal, engine
        )
        service.directory = self._directory()
        service.stops_adopted = self._config.slurm.stop_adopted
        self._watch_store(service)
        self._meter(service)
        assert service.reports is not None
        steward = self._steward = Steward(service, self._config, self._home, service.reports)
        self._commands = Commands(service, self._config, steward.efforts)
        self._place = Place(service, self._config, self._home, self._store, self._stop)
        when = When(service, np.random.default_rng())
        sockets, identity = self._sockets(), self._identity()
        seeing = Seeing(service, self._home, lambda: self._config.node.layout)
        pages = self._pages(seeing, identity, sockets)
        beside = (
            *agent_table(service),
            *steward.table(self._commands),
            *SeeingRoutes(service, seeing, self._home).table(),
            *seeing_table(service),
            *pages.routes(),
        )
        routes = Routes(service, self._commands, when, self._place, beside)
        app = App(routes.table(), identity, steward.questions_for)
        app.heard_of = steward.heard_of
        front = Front(app, pages.over(app))
        self._uvicorn = _Uvicorn(_uvicorn_config(front), (service.stream.close, pages.close))
        service.begin(teams_to_set(self._fold.teams.values(), self._config))
        steward.begin()
        watching = asyncio.create_task(self._watch())
        try:
            ready(_where(sockets))
            await self._uvicorn.serve(sockets)
        finally:
            watching.cancel()
            await steward.end()
            service.end()
            engine.close()
            with suppress(FileNotFoundError):
                self._home.socket.unlink()

    def _pages(self, seeing: Seeing, identity: Identity, sockets: list[socket.socket]) -> Pages:
        urls = [_url(one) for one in sockets if one.family != socket.AF_UNIX]
        ground = Ground(self._service, seeing, self._home, identity, lambda: self._config, lambda: urls)
        return self._make_pages(ground)

    def _meter(self, service: Service) -> None:
        meters = self._footing.meters(self._home, service.now)
        metering = Metering(self._home, service, self._config.monitor, meters)
        watching = self._watching = Watching(self._fold, metering, self._config.findings, service)
        metering.after_a_look = lambda: watching.look(service.now())
        service.metering, service.views.used = metering, metering.used
        service.watching = watching
        service.reports = Reports(service, metering)
        service.reports.makers = makers(
            self._home, self._environment, lambda: self._config.monitor.mlflow_hosts
        )
        service.endings = Endings(self._fold, metering, self._journal, self._config.mend)

    def _directory(self) -> Directory:
        """Whoever leaves on a day has left by the wall's clock."""
        wall = self._service.wall
        return Directory(self._config, today=lambda: datetime.fromtimestamp(wall()).astimezone().date())

    def _find(self, job_id: JobId) -> Job:
        """The engine asks for what it is told to start."""
        record = self._fold.records.get(job_id)
        entry = None if record is None else record.running or record.waiting
        if entry is None:
            raise NotFound(f"there is no job {job_id}")
        return entry.job

    def _environment(self, key: str) -> dict[str, str]:
        return self._commands.environment(key)

    def _watch_store(self, service: Service) -> None:
        loop = asyncio.get_running_loop()
        self._journal.on_trouble = lambda said: loop.call_soon_threadsafe(service.store_failed, said)
        self._journal.on_recovered = lambda: loop.call_soon_threadsafe(log.warning, "the store works again")

    def _identity(self) -> Identity:
        mine = own_name()

        def known(name: str, uid: int | None, role: str | None) -> Person:
            found = person(self._config, name, uid, name == mine or uid == 0, self._service.directory)
            return found if role is None else msgspec.structs.replace(found, role=role)

        return Identity(known, self._user_of)

    def _user_of(self, hashed: str) -> tuple[str, str] | None:
        """Whose token this is, and the role it gives."""
        token = self._journal.token(hashed)
        if token is None or (token.expires_at is not None and token.expires_at <= self._service.now()):
            return None
        return token.user, token.role

    def _stop(self) -> None:
        self._uvicorn.should_exit = True

    def _sockets(self) -> list[socket.socket]:
        sockets = [_unix(self._home)]
        given = self._settings.http
        address = self._config.server.address if given is msgspec.UNSET else given
        if address is not None:
            sockets.append(_usual(address) if address == HERE else _tcp(address.host, address.port))
        return sockets

    async def _watch(self) -> None:
        """What others may change: the configuration, and the clock."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self._service.look_at_the_wall()
            self._steward.look()
            found = self._watcher.poll()
            if isinstance(found, BadConfig):
                log.error("%s; the configuration before stays in force", found)
            elif found is not None:
                self._reconfigure(overruled(found, self._settings))

    def _reconfigure(self, config: Config) -> None:
        for sentence in changes(self._config, config).sentences:
            log.warning("%s", sentence)
        try:
            self._service.set_teams(teams_to_set(self._fold.teams.values(), config))
        except MusterError as error:
            log.warning("%s; the configuration before stays in force", error)
            return
        try:
            self._footing.configure(self._home, config)
        except MusterError as error:
            log.warning("%s; where nodes stand is as it was", error)
        self._config = self._commands.config = self._place.config = config
        self._service.directory = self._directory()
        self._watching.rules = config.findings
        if self._service.endings is not None:
            self._service.endings.rules = config.mend
        self._steward.configure(config)
        self._service.set_policy(config.policy())
        log.warning("the configuration has been read again")


class _Uvicorn(uvicorn.Server):
    """One that only stops serving when it is told to end.

    The original then raises the signal again, which would end the process before the rest is written down.
    And those who listen for changes are let go before it waits for the rest.
    """

    def __init__(self, config: uvicorn.Config, let_go: Iterable[Callable[[], None]]) -> None:
        super().__init__(config)
        self._let_go = let_go

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for let_go in self._let_go:
            let_go()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop, ends = asyncio.get_running_loop(), (signal.SIGINT, signal.SIGTERM)
        for end in ends:
            loop.add_signal_handler(end, self.handle_exit, end, None)
        try:
            yield
        finally:
            for end in ends:
                loop.remove_signal_handler(end)


def _uvicorn_config(app: Asgi) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=PeerProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )


def _unix(home: Home) -> socket.socket:
    """Anybody on the machine may knock; the kernel says who it is."""
    path = str(home.socket)
    if len(path.encode()) > 107:
        raise MusterError(f"{path} is too long for a socket's name; choose a shorter MUSTER_HOME")
    with suppress(FileNotFoundError):
        os.unlink(path)  # the store's lock says that nobody listens there
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    os.chmod(path, 0o666)
    listening.listen(_BACKLOG)
    listening.setblocking(False)
    return listening


def _tcp(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=_BACKLOG, reuse_port=False)
    except OSError as error:
        raise MusterError(f"can't listen on {host}:{port}: {error.strerror or error}") from None


def _usual(address: Address) -> socket.socket:
    """Where it is looked for; if somebody else is there already, any other port does."""
    try:
        return _tcp(*address)
    except MusterError:
        return _tcp(address.host, 0)


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _where(sockets: list[socket.socket]) -> str:
    return ", ".join(s.getsockname() if s.family == socket.AF_UNIX else _url(s) for s in sockets)
