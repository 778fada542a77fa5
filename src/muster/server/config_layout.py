"""The layout of ``muster.toml``: which tables and keys there are, how each is read, what must go together.

A refusal is a ``Misfit``, which knows the path to the trouble.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import get_args

import msgspec

from muster.engines.slurm.rest_line import parse_place
from muster.model.errors import BadInput
from muster.model.policy import Policy, preset, tuned
from muster.model.tenancy import ROOT, Quota
from muster.model.units import MINUTE
from muster.server import config_post as post
from muster.server import config_values as values
from muster.server.config_tables import (
    CharterTable,
    Config,
    EngineTable,
    Limits,
    Machine,
    Monitor,
    Rules,
    Server,
    SlurmTable,
    TeamTable,
    UserTable,
)
from muster.server.config_values import Misfit, Reader, Spec, above_zero, at, or_unlimited, section
from muster.server.stewardship.zones import zone_of
from muster.steward.budget import (
    PAUSES,
    BudgetRules,
    Prices,
    check_currency,
    parse_currency,
    parse_team_budget,
)
from muster.steward.mend import MendRules
from muster.steward.passing import REQUIRES
from muster.steward.review.calendar import Schedule, parse_schedule
from muster.steward.review.rules import ReviewRules
from muster.steward.rules import ACTS, Further, Response
from muster.steward.rules import Rules as FindingRules
from muster.store.rows import Retention

ENGINES, WAYS = ("local", "slurm"), ("govern", "place")
_PERIOD, _SHORTEST_PERIOD = "period", 1.0
_HOSTS = "mlflow_hosts"
_HINDSIGHT = "hindsight"
_MOST_FACTOR = 10
_DEEPEST = 16  # teams above each other
_NOTHING = Quota(0, 0, 0)


def _machine(value: object) -> Machine:
    found = section(Machine(), _MACHINE)(value)
    if found.gpus is None and (found.gpu_memory_bytes is not None or found.gpu_model != "gpu"):
        raise BadInput("gpu_model and gpu_memory speak of the GPUs that gpus counts; set gpus too")
    return found


def _limits(base: Limits) -> Reader[Limits]:
    def read(value: object) -> Limits:
        found = section(base, _LIMITS)(value)
        most, usual = found.time_most_seconds, found.time_default_seconds
        if most is not None and usual is not None and usual > most:
            raise Misfit("it is longer than time_most", "time_default")
        return found

    return read


def _monitor(value: object) -> Monitor:
    given = values.table((_PERIOD, _HOSTS, _HINDSIGHT, *_RETENTION))(value)
    kept = {key: value for key, value in given.items() if key in _RETENTION}
    period = at(_PERIOD, values.span, given[_PERIOD]) if _PERIOD in given else Monitor().period_seconds
    if not _SHORTEST_PERIOD <= period <= MINUTE:
        raise Misfit("looks are a second apart at least and a minute at most", _PERIOD)
    hosts = at(_HOSTS, values.names, given[_HOSTS]) if _HOSTS in given else ()
    found = Monitor(period, section(Retention(), _RETENTION)(kept), hosts)
    if _HINDSIGHT not in given:
        return found
    seconds = at(_HINDSIGHT, above_zero(values.span), given[_HINDSIGHT])
    return msgspec.structs.replace(found, hindsight_seconds=seconds)


def _mend(value: object) -> MendRules:
    found = section(Config().mend, _MEND)(value)
    if not 1 < found.factor <= _MOST_FACTOR:
        raise Misfit(f"memory grows by a factor above 1, and of {_MOST_FACTOR} at most", "factor")
    return found


def _prices(value: object) -> Prices:
    found = section(Prices(), _PRICES)(value)
    if found.currency is None and found != Prices():
        raise BadInput('prices are in some money; say which, like currency = "EUR"')
    return found


def _by_model(value: object) -> dict[str, float]:
    """Models have names of all kinds."""
    return {model: at(model, values.number, price) for model, price in values.table()(value).items()}


def _schedule(value: object) -> Schedule | None:
    return parse_schedule(values.text(value))


def _timezone(value: object) -> str:
    found = values.text(value)
    zone_of(found)
    return found


def _review(value: object) -> ReviewRules:
    found = section(ReviewRules(), _REVIEW)(value)
    if found.notice_seconds > found.opens_seconds:
        raise Misfit("it is longer than the review is open; opens says for how long that is", "notice")
    return found


def _response(key: str) -> Reader[Response]:
    """What is to be done: a table, or just the act."""

    def read(value: object) -> Response:
        usual: Response = getattr(FindingRules(), key)
        return section(usual, _RESPONSE)({"act": value} if isinstance(value, str) else value)

    return read


def _rules(value: object) -> Rules:
    given = values.table(_RULES)(value)
    knobs = {key: at(key, _knob(key), given[key]) for key in sorted(given) if key != "preset"}
    found = Rules(at("preset", _preset, given.get("preset", "fair")), tuple(knobs.items()))
    if tuned(preset(found.preset), knobs).runtimes == "true":
        key = "runtimes" if "runtimes" in knobs else "preset"
        raise Misfit("only a simulation knows run times beforehand; choose another", key)
    return found


def _preset(value: object) -> str:
    return preset(values.text(value)).name


def _knob(key: str) -> Reader[str]:
    """A knob as text, once it is known to fit."""
    default = getattr(Policy(), key)

    def read(value: object) -> str:
        text = _knob_text(key, default, value)
        tuned(Policy(), {key: text})
        return text

    return read


def _knob_text(key: str, default: object, value: object) -> str:
    if isinstance(default, bool):
        return str(values.flag(value)).lower()
    if isinstance(default, tuple):
        if not isinstance(value, list):
            raise BadInput(f"{values.shown(value)} is not a list of numbers")
        return ",".join(str(at(i, values.number, item)) for i, item in enumerate(value))
    if key.endswith("_seconds") and isinstance(value, str):
        return str(values.span(value))
    if isinstance(default, int):
        return str(values.count(value))
    return str(values.number(value)) if isinstance(default, float) else values.text(value)


def _allowance(value: object) -> Quota | None:
    """What may be lent or borrowed: ``true`` is anything, ``false`` nothing, a table so much."""
    if isinstance(value, bool):
        return None if value else _NOTHING
    return section(Quota(), _QUOTA)(value)


def _rest(value: object) -> str:
    """Where slurmrestd is."""
    return str(parse_place(values.text(value)))


def _left(value: object) -> bool | date:
    if isinstance(value, bool):
        return value
    if not isinstance(value, date):
        raise BadInput(f"{values.shown(value)} does not say since when; write true, or a day like 2026-10-01")
    return value.date() if isinstance(value, datetime) else value


_SERVER: Spec = {
    "name": ("name", values.name),
    "http": ("address", values.address),
    "store": ("store", values.store),
    "remembers": ("remembers", values.count),
}
_RULES = ("preset", *(field.name for field in msgspec.structs.fields(Policy) if field.name != "name"))
_MACHINE: Spec = {
    "reserve_cpus": ("reserve_cpus_milli", values.milli),
    "reserve_memory": ("reserve_memory_bytes", values.size),
    "cpus": ("cpus_milli", above_zero(values.milli)),
    "memory": ("memory_bytes", above_zero(values.size)),
    "gpus": ("gpus", values.devices),
    "gpu_model": ("gpu_model", values.name),
    "gpu_memory": ("gpu_memory_bytes", above_zero(values.size)),
    "labels": ("labels", values.names),
    "layout": ("layout", values.text),
}
_LIMITS: Spec = {
    "jobs_waiting": ("jobs_waiting", values.count),
    "array_members": ("array_members", values.count),
    "time_default": ("time_default_seconds", or_unlimited(above_zero(values.span))),
    "time_most": ("time_most_seconds", or_unlimited(above_zero(values.span))),
    "memory_default": ("memory_default_bytes", or_unlimited(above_zero(values.size))),
    "log_bytes": ("log_bytes", values.size),
    "grace": ("grace_seconds", values.span),
}
_RETENTION: Spec = {
    "keep_minutes": ("minutes_seconds", above_zero(values.span)),
    "keep_hours": ("hours_seconds", above_zero(values.span)),
    "keep_attempts": ("attempts_seconds", or_unlimited(above_zero(values.span))),
}
_MEND: Spec = {
    "tries": ("tries", values.count),
    "factor": ("factor", values.number),
    "most_memory": ("most_memory_bytes", values.size),
    "most_gpu_memory": ("most_gpu_memory_bytes", values.size),
}
_PRICES: Spec = {
    "currency": ("currency", lambda value: parse_currency(values.text(value))),
    "gpu": ("gpu", values.number),
    "gpus": ("gpus", _by_model),
    "cpu": ("cpu", values.number),
    "memory": ("memory", values.number),
}
_BUDGETS: Spec = {
    "pause": ("pause", values.one_of(*PAUSES)),
    "decide": ("decide_seconds", above_zero(values.span)),
    "decide_suspended": ("decide_suspended_seconds", above_zero(values.span)),
}
_RESPONSE: Spec = {
    "act": ("act", values.one_of(*ACTS)),
    "warnings": ("warnings", values.count),
    "between": ("between_seconds", values.span),
    "grace": ("grace_seconds", values.span),
}
_FINDINGS: Spec = {
    "idle": ("idle_seconds", values.span),
    "idle_without_gpus": ("idle_cpu_seconds", values.span),
    "settle": ("settle_seconds", values.span),
    "also": ("also", values.some_of(*get_args(Further))),
    "gpu_busy": ("gpu_busy", above_zero(values.number)),
    "cpus": ("cpus", above_zero(values.number)),
    "io": ("io_bytes", above_zero(values.size)),
    "memory": ("memory_bytes", above_zero(values.size)),
    "stuck": ("stuck_seconds", values.span),
    "stuck_unsure": ("stuck_unsure_seconds", values.span),
    "on_idle": ("on_idle", _response("on_idle")),
    "on_unused_gpu": ("on_unused_gpu", _response("on_unused_gpu")),
    "on_stuck": ("on_stuck", _response("on_stuck")),
    "on_gpu_memory": ("on_gpu_memory", _response("on_gpu_memory")),
}
_CHARTER: Spec = {
    "require": ("require", values.one_of(*REQUIRES)),
}
_ENGINE: Spec = {
    "kind": ("kind", values.one_of(*ENGINES)),
}
_SLURM: Spec = {
    "decide": ("decide", values.one_of(*WAYS)),
    "observe": ("observe", values.flag),
    "stop_adopted": ("stop_adopted", values.flag),
    "conf": ("conf", values.text),
    "rest": ("rest", _rest),
    "rest_token": ("rest_token", values.text),
    "partition": ("partition", values.name),
    "account": ("account", values.name),
    "qos": ("qos", values.name),
    "options": ("options", values.texts),
    "soon": ("soon_seconds", above_zero(values.span)),
    "period": ("period_seconds", above_zero(values.span)),
    "limit": ("limit_seconds", above_zero(values.span)),
}
_REVIEW: Spec = {
    "schedule": ("schedule", _schedule),
    "opens": ("opens_seconds", above_zero(values.span)),
    "notice": ("notice_seconds", above_zero(values.span)),
    "revive": ("revive_seconds", above_zero(values.span)),
    "silent": ("silent_seconds", above_zero(values.span)),
    "longest": ("longest_seconds", above_zero(values.span)),
    "timezone": ("timezone", _timezone),
}
_QUOTA: Spec = {
    "gpus": ("gpus_milli", values.milli),
    "cpus": ("cpus_milli", values.milli),
    "memory": ("memory_bytes", values.size),
}
_TEAM: Spec = {
    "parent": ("parent", values.name),
    "quota": ("quota", section(Quota(), _QUOTA)),
    "weight": ("weight", above_zero(values.number)),
    "borrow": ("borrow", _allowance),
    "lend": ("lend", _allowance),
    "users": ("users", values.names),
    "leads": ("leads", values.names),
    "require": ("require", values.one_of(*REQUIRES)),
    "budget": ("budget", lambda value: parse_team_budget(values.text(value))),
}


def _user_keys(limits: Limits) -> Spec:
    return {
        "role": ("role", values.one_of("user", "lead", "admin")),
        "team": ("team", values.name),
        "limits": ("limits", _limits(limits)),
        "was": ("was", values.names),
        "left": ("left", _left),
        **post.USER,
    }


# Every key there is, by its table.
KEYS: Mapping[str, tuple[str, ...]] = {
    "server": tuple(_SERVER),
    "policy": _RULES,
    "node": tuple(_MACHINE),
    "limits": tuple(_LIMITS),
    "monitor": (_PERIOD, _HOSTS, _HINDSIGHT, *_RETENTION),
    "findings": (*_FINDINGS, *_RESPONSE),
    "mend": tuple(_MEND),
    "prices": tuple(_PRICES),
    "budgets": tuple(_BUDGETS),
    "review": tuple(_REVIEW),
    "team": (*_TEAM, *_QUOTA),
    "user": tuple(_user_keys(Limits())),
    "charter": tuple(_CHARTER),
    "engine": tuple(_ENGINE),
    "slurm": tuple(_SLURM),
    "attention": tuple(post.ATTENTION),
    "channel": tuple(post.CHANNEL),
}


def config_from(raw: object) -> Config:
    given = values.table(KEYS)(raw)
    limits = at("limits", _limits(Limits()), given.get("limits", {}))
    user = section(UserTable(), _user_keys(limits))
    config = Config(
        at("server", section(Server(), _SERVER), given.get("server", {})),
        at("policy", _rules, given.get("policy", {})),
        at("node", _machine, given.get("node", {})),
        limits,
        at("monitor", _monitor, given.get("monitor", {})),
        at("findings", section(FindingRules(), _FINDINGS), given.get("findings", {})),
        at("mend", _mend, given.get("mend", {})),
        at("prices", _prices, given.get("prices", {})),
        at("budgets", section(BudgetRules(), _BUDGETS), given.get("budgets", {})),
        at("team", values.by_name(section(TeamTable(), _TEAM)), given.get("team", {})),
        at("user", values.by_name(user), given.get("user", {})),
        charter=at("charter", section(CharterTable(), _CHARTER), given.get("charter", {})),
        attention=at("attention", section(post.Attention(), post.ATTENTION), given.get("attention", {})),
        channel=at("channel", post.channels, given.get("channel", {})),
        review=at("review", _review, given.get("review", {})),
        engine=at("engine", section(EngineTable(), _ENGINE), given.get("engine", {})),
        slurm=at("slurm", section(SlurmTable(), _SLURM), given.get("slurm", {})),
    )
    for name in config.team:
        _check_place(config, name)
        _check_budget(config, name)
    _check_users(config)
    _check_names(config)
    _check_channels(config)
    return config


# How teams and users go together


def _check_place(config: Config, team: str) -> None:
    """The team hangs below the root, and not too deep."""
    path = config.above(team)
    top = config.team[path[-1]].parent
    if top in path:
        raise Misfit(f"{team!r} would be its own ancestor", "team", team, "parent")
    if top != ROOT:
        raise Misfit(
            f"there is no team {top!r}; {values.nearest(top, config.team)}", "team", path[-1], "parent"
        )
    if len(path) > _DEEPEST:
        raise Misfit(f"more than {_DEEPEST} teams would stand above each other", "team", team, "parent")


def _check_budget(config: Config, team: str) -> None:
    budget = config.team[team].budget
    if budget is None:
        return
    try:
        check_currency(budget, config.prices)
    except BadInput as error:
        raise Misfit(str(error), "team", team, "budget") from None


def _check_users(config: Config) -> None:
    lists: dict[str, list[str]] = {}  # of each user, the teams that list them
    for name, team in config.team.items():
        for user in dict.fromkeys(team.members()):
            lists.setdefault(user, []).append(name)
    for user, table in config.user.items():
        _check_user(config, user, table, lists.get(user, []))
    for user, teams in lists.items():
        if len(teams) > 1 and config.user.get(user, UserTable()).team is None:
            both = " and ".join(repr(t) for t in teams[:2])
            said = f'{user!r} is in {both}; choose the one for jobs that name none: [user.{user}] team = "…"'
            raise Misfit(said, "team", teams[1], *_place_in(config.team[teams[1]], user))


def _check_user(config: Config, user: str, table: UserTable, teams: list[str]) -> None:
    if table.team is not None and table.team not in config.team:
        hint = values.nearest(table.team, config.team)
        raise Misfit(f"there is no team {table.team!r}; {hint}", "user", user, "team")
    if table.role == "lead" and table.team is None and not teams:
        raise Misfit(f"{user!r} is in no team that could be led; set team", "user", user, "role")


def _check_names(config: Config) -> None:
    """A name that somebody had is nobody's now, so that it is plain whose it is."""
    now_called: dict[str, str] = {}
    for user, table in config.user.items():
        for position, before in enumerate(table.was):
            where = ("user", user, "was", position)
            if before == user:
                raise Misfit(
                    f"{user!r} is what they are called now; write only names that they had before", *where
                )
            if before in config.user:
                said = f"{before!r} has settings of its own; move them to [user.{user}], with its old names"
                raise Misfit(said, *where)
            if before in now_called:
                raise Misfit(
                    f"{before!r} was {now_called[before]!r} already; one person had the name", *where
                )
            now_called[before] = user


def _check_channels(config: Config) -> None:
    named: dict[tuple[str, ...], tuple[str, ...]] = {("attention", "channels"): config.attention.channels}
    for name, table in config.user.items():
        named["user", name, "channels"] = table.channels or ()
    post.check_channels(config.channel, named)
    for name, table in config.user.items():
        for position, channel in enumerate(table.channels or ()):
            if config.channel[channel].kind == "email" and table.email is None:
                said = f"{channel!r} writes e-mails, and {name!r} has no address; set email"
                raise Misfit(said, "user", name, "channels", position)


def _place_in(team: TeamTable, user: str) -> tuple[str, int]:
    """Where the team lists the user."""
    if user in team.leads:
        return "leads", team.leads.index(user)
    return "users", (team.users or ()).index(user)


# What is different


def differing(table: str, old: Config, new: Config) -> list[str]:
    """The keys of a table that differ, as they are written in the file."""
    before, after = _said(table, old), _said(table, new)
    return [f"{table}.{key}" for key in {**before, **after} if before.get(key) != after.get(key)]


_SPECS: Mapping[str, Spec] = {
    "server": _SERVER,
    "node": _MACHINE,
    "limits": _LIMITS,
    "findings": _FINDINGS,
    "mend": _MEND,
    "charter": _CHARTER,
    "attention": post.ATTENTION,
    "prices": _PRICES,
    "budgets": _BUDGETS,
    "review": _REVIEW,
    "engine": _ENGINE,
    "slurm": _SLURM,
}


def _said(table: str, config: Config) -> dict[str, object]:
    if table == "policy":
        return {"preset": config.rules.preset, **dict(config.rules.knobs)}
    if table == "monitor":
        kept = {key: getattr(config.monitor.retention, field) for key, (field, _) in _RETENTION.items()}
        monitor = config.monitor
        said = {_PERIOD: monitor.period_seconds, _HOSTS: monitor.mlflow_hosts}
        return {**said, _HINDSIGHT: monitor.hindsight_seconds, **kept}
    return {key: getattr(getattr(config, table), field) for key, (field, _) in _SPECS[table].items()}
