"""``[attention]``, ``[channel.NAME]`` and what ``[user.NAME]`` says of messages.

A webhook's address and a password are secrets: no refusal repeats them, and either may stand in a file of its
own, which is read when it is needed.
"""

import re
from collections.abc import Mapping
from datetime import UTC, tzinfo
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import msgspec

from muster.model.errors import BadInput
from muster.model.post import TERMINAL
from muster.model.units import MINUTE
from muster.server import config_values as values
from muster.server.config_values import Misfit, Reader, Spec, at, section

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_EMAIL = re.compile(r"[A-Za-z0-9._%+'-]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")
_HOST = re.compile(r"[A-Za-z0-9.:_-]{1,253}")
_MOST_WORDS = 100
_LONGEST_SECONDS = 5 * MINUTE

Clock = tuple[int, int]  # hours and minutes


class Attention(msgspec.Struct, frozen=True):
    """When people are written to, and where."""

    digest: Clock = (9, 0)
    interruptions: int = 3
    efforts: int = 3  # under way at once, of one owner
    quiet: tuple[Clock, Clock] | None = None  # from and to; nobody is interrupted in between
    timezone: str | None = None  # None: the machine's
    channels: tuple[str, ...] = ()


class Channel(msgspec.Struct, frozen=True):
    """A way to reach people. Which of these it needs depends on its kind."""

    kind: str = ""
    url: str | None = None
    url_file: str | None = None
    host: str | None = None
    port: int | None = None
    sender: str | None = None
    user: str | None = None
    password: str | None = None
    password_file: str | None = None
    tls: str = "starttls"
    ca_file: str | None = None
    command: tuple[str, ...] = ()
    timeout_seconds: float = 10.0


def _clock(value: object) -> Clock:
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise BadInput(f'{values.shown(value)} is not a time of day; write it like "09:00"')
    return int(match[1]), int(match[2])


def _quiet(value: object) -> tuple[Clock, Clock]:
    first, dash, last = value.partition("-") if isinstance(value, str) else ("", "", "")
    if not dash:
        raise BadInput(f'{values.shown(value)} is not a part of the day; write it like "22:00-07:00"')
    found = _clock(first.strip()), _clock(last.strip())
    if found[0] == found[1]:
        raise BadInput(f"{values.shown(value)} begins when it ends; leave it out to be quiet never")
    return found


def _timezone(value: object) -> str:
    name = values.text(value)
    try:
        zone_of(name)
    except (OSError, ValueError, KeyError):
        raise BadInput(
            f'{values.shown(value)} is no time zone that is known here; write it like "Europe/Berlin"'
        ) from None
    return name


def zone_of(name: str | None) -> tzinfo | None:
    """None: the machine's own."""
    return None if name is None else UTC if name == "UTC" else ZoneInfo(name)


def _url(value: object) -> str:
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
        fits = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
        fits = fits and (parts.port is None or parts.port > 0)  # type: ignore[union-attr]
    except ValueError:
        fits = False
    if not fits or not isinstance(value, str) or not re.fullmatch(r"[!-~]{1,1000}", value):
        raise BadInput("this is not a webhook's address; write it like https://host/path, or use url_file")
    return value


def _secret(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= 500:
        raise BadInput("this is not a password; write it in quotes, or use password_file")
    return value


def _path(value: object) -> str:
    found = values.text(value)
    if not found.startswith("/") or not found.isprintable():
        raise BadInput(f"{values.shown(value)} is not the full path of a file")
    return found


def email(value: object) -> str:
    found = values.text(value)
    if not _EMAIL.fullmatch(found):
        raise BadInput(f"{values.shown(value)} is not an e-mail address; write it like ana@example.org")
    return found


def _host(value: object) -> str:
    found = values.text(value)
    if not _HOST.fullmatch(found):
        raise BadInput(f"{values.shown(value)} is not the name of a host")
    return found


def _port(value: object) -> int:
    found = values.count(value)
    if not 0 < found <= 65535:
        raise BadInput(f"{found} is not a port; write a number from 1 to 65535")
    return found


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_WORDS:
        raise BadInput('a command is a list of words, such as ["/usr/local/bin/tell", "--urgent"]')
    words = tuple(at(position, values.text, word) for position, word in enumerate(value))
    if not words[0].startswith("/") or any("\0" in word for word in words):
        raise BadInput("a command begins with the full path of a program")
    return words


def _timeout(value: object) -> float:
    found = values.span(value)
    if not 1 <= found <= _LONGEST_SECONDS:
        raise BadInput("a channel is waited for between a second and five minutes")
    return found


ATTENTION: Spec = {
    "digest": ("digest", _clock),
    "interruptions": ("interruptions", values.count),
    "efforts": ("efforts", values.count),
    "quiet": ("quiet", _quiet),
    "timezone": ("timezone", _timezone),
    "channels": ("channels", values.names),
}
_ANY: Spec = {
    "kind": ("kind", values.one_of("webhook", "slack", "email", "command")),
    "timeout": ("timeout_seconds", _timeout),
}
_WEBHOOK: Spec = {"url": ("url", _url), "url_file": ("url_file", _path), "ca_file": ("ca_file", _path)}
_MAIL: Spec = {
    "host": ("host", _host),
    "port": ("port", _port),
    "from": ("sender", email),
    "user": ("user", values.text),
    "password": ("password", _secret),
    "password_file": ("password_file", _path),
    "tls": ("tls", values.one_of("starttls", "tls", "none")),
    "ca_file": ("ca_file", _path),
}
_COMMAND: Spec = {"command": ("command", _words)}
CHANNEL: Spec = {**_ANY, **_WEBHOOK, **_MAIL, **_COMMAND}
_OF_KIND = {"webhook": _WEBHOOK, "slack": _WEBHOOK, "email": _MAIL, "command": _COMMAND}
_NEEDED = {
    "webhook": (("url", "url_file"),),
    "slack": (("url", "url_file"),),
    "email": (("host",), ("from",)),
    "command": (("command",),),
}
USER: Spec = {"email": ("email", email), "channels": ("channels", values.names)}


def channel(value: object) -> Channel:
    given = values.table(CHANNEL)(value)
    if "kind" not in given:
        raise BadInput("say what kind it is: webhook, slack, email or command")
    kind = at("kind", values.one_of(*_OF_KIND), given["kind"])
    other = next((key for key in given if key not in {**_ANY, **_OF_KIND[kind]}), None)
    if other is not None:
        raise Misfit(f"a channel of kind {kind!r} has no such setting", other)
    for choices in _NEEDED[kind]:
        if not any(choice in given for choice in choices):
            raise BadInput(f"a channel of kind {kind!r} needs {' or '.join(choices)}")
    found = section(Channel(), CHANNEL)(given)
    _check_secrets(found)
    return found


def _check_secrets(channel: Channel) -> None:
    if channel.url is not None and channel.url_file is not None:
        raise Misfit("url says that already; leave one of them out", "url_file")
    if channel.password is not None and channel.password_file is not None:
        raise Misfit("password says that already; leave one of them out", "password_file")
    has_password = channel.password is not None or channel.password_file is not None
    if has_password is not (channel.user is not None):
        raise BadInput("user and password go together; say both or none")
    if has_password and channel.tls == "none":
        raise Misfit("a password would go over the wire for all to read; use starttls or tls", "tls")


channels: Reader[dict[str, Channel]] = values.by_name(channel)


def check_channels(known: Mapping[str, Channel], named: Mapping[tuple[str, ...], tuple[str, ...]]) -> None:
    """Who names a channel names one that there is: by the place where it is named."""
    if TERMINAL in known:
        raise Misfit("everybody has that one by themselves; choose another name", "channel", TERMINAL)
    for place, names in named.items():
        for position, name in enumerate(names):
            if name not in known:
                hint = values.nearest(name, known)
                raise Misfit(f"there is no channel {name!r}; {hint}", *place, position)
