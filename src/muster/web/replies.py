"""What goes back to a browser, and the headers that keep it safe there.

Nothing is loaded from elsewhere, nothing inline is executed, no other site may frame a page or see where one
came from. What people wrote is escaped by the templates; this is for the day on which somebody forgets to.
"""

from collections.abc import AsyncIterator, Sequence

import msgspec

from muster.server.http import Send

Header = tuple[bytes, bytes]

HTML, TEXT, JSON, CSV = (
    f"{kind}; charset=utf-8" for kind in ("text/html", "text/plain", "application/json", "text/csv")
)
_POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
_SAFE: tuple[Header, ...] = (
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
NO_STORE: Header = (b"cache-control", b"no-store")
FOREVER: Header = (b"cache-control", b"public, max-age=31536000, immutable")  # its name changes with it


class Reply(msgspec.Struct, frozen=True):
    """A whole answer, or one that comes in pieces."""

    content_type: str
    body: bytes | AsyncIterator[bytes] = b""
    status: int = 200
    headers: tuple[Header, ...] = (NO_STORE,)

    def with_headers(self, *more: Header) -> "Reply":
        return msgspec.structs.replace(self, headers=(*self.headers, *more))


def redirect(to: str, *headers: Header) -> Reply:
    """Look there instead; whatever was sent is not sent again."""
    return Reply(TEXT, status=303, headers=(NO_STORE, (b"location", _ascii(to)), *headers))


def _ascii(url: str) -> bytes:
    """A path of this server, and nothing that could end a header."""
    safe = url if url.isprintable() and url.isascii() and is_local(url) else "/"
    return safe.encode()


def is_local(path: str) -> bool:
    """Whether it is a path on this server: ``//host`` and ``/\\host`` are not."""
    return path.startswith("/") and not path.startswith(("//", "/\\"))


async def deliver(send: Send, reply: Reply) -> None:
    head: Sequence[Header] = (*_SAFE, *reply.headers, (b"content-type", reply.content_type.encode()))
    if isinstance(reply.body, bytes):
        head = (*head, (b"content-length", str(len(reply.body)).encode()))
        await send({"type": "http.response.start", "status": reply.status, "headers": head})
        await send({"type": "http.response.body", "body": reply.body})
        return
    await send({"type": "http.response.start", "status": reply.status, "headers": head})
    async for piece in reply.body:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
