"""A webhook: what is told is posted as JSON, or in the form that Slack and its kin read.

Any status from 200 to 299 says that it was taken. A redirection is not followed: what was configured is where
things go.
"""

import http.client
import ssl
from urllib.parse import urlsplit

import msgspec

from muster.server.config_post import Channel
from muster.server.stewardship.channels.base import Envelope, NotTaken, at_most, secret_in, why
from muster.steward.digest import SLACK

_LATER = frozenset({408, 425, 429})  # refusals that are about now
_HEADERS = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "muster"}


class Webhook:
    """An address to post to. It is a secret: who knows it can write there."""

    def __init__(self, written: Channel) -> None:
        self._written = written

    def send(self, envelope: Envelope) -> None:
        written = self._written
        url = written.url or secret_in(written.url_file or "", "url_file")
        body = _slack(envelope) if written.kind == "slack" else _json(envelope)
        try:
            status = self._posted(url, msgspec.json.encode(body))
        except ssl.SSLError:
            raise NotTaken("its certificate is not trusted here; ca_file names one that is") from None
        except OSError as error:
            raise NotTaken(why(error)) from None
        except (http.client.HTTPException, ValueError):
            raise NotTaken("it does not speak like a web server") from None
        if not 200 <= status < 300:
            for_good = status < 500 and status not in _LATER
            raise NotTaken(f"it answers with status {status}", for_good=for_good)

    def _posted(self, url: str, body: bytes) -> int:
        parts, seconds = urlsplit(url), self._written.timeout_seconds
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=self._written.ca_file)
            connection = http.client.HTTPSConnection(
                parts.hostname or "", parts.port, timeout=seconds, context=context
            )
        else:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
        try:
            connection.connect()
            with at_most(seconds, lambda: connection.sock):
                path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                connection.request("POST", path, body, _HEADERS)
                return connection.getresponse().status
        finally:
            connection.close()


def _json(envelope: Envelope) -> dict[str, object]:
    pairs = zip(envelope.numbers, envelope.messages, strict=True)
    return {
        "to": envelope.to,
        "digest": envelope.digest,
        "text": envelope.text,
        "markdown": envelope.markdown,
        "messages": [{"number": number, **msgspec.structs.asdict(one)} for number, one in pairs],
    }


def _slack(envelope: Envelope) -> dict[str, object]:
    """To a channel that many read, so it says for whom."""
    return {"text": f"{SLACK.text(envelope.to)}: {envelope.slack}"}
