"""What pages load besides themselves: style, scripts, the icon. Read once, named by what is in them.

A name changes with the content, so a browser may keep each forever.
"""

import hashlib
from importlib.resources import files

import msgspec

from muster.server.errors import NotFound
from muster.web.replies import FOREVER, Reply

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class Asset(msgspec.Struct, frozen=True):
    url: str
    content_type: str
    body: bytes


class Assets:
    """All of them, by name and by address."""

    def __init__(self) -> None:
        self._by_name: dict[str, Asset] = {}
        self._by_url: dict[str, Asset] = {}
        folder = files("muster.web") / "static"
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            stem, _, kind = file.name.rpartition(".")
            if kind in _TYPES:
                self._add(stem, kind, file.read_bytes())

    def _add(self, stem: str, kind: str, body: bytes) -> None:
        mark = hashlib.sha256(body).hexdigest()[:12]
        asset = Asset(f"/static/{stem}.{mark}.{kind}", _TYPES[kind], body)
        self._by_name[f"{stem}.{kind}"] = self._by_url[asset.url] = asset

    def url(self, name: str) -> str:
        return self._by_name[name].url

    def total_bytes(self) -> int:
        return sum(len(asset.body) for asset in self._by_name.values())

    def reply(self, path: str) -> Reply:
        found = self._by_url.get(path)
        if found is None:
            raise NotFound(f"there is no {path}; load the page again")
        return Reply(found.content_type, found.body, headers=(FOREVER,))
