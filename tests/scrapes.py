"""What Prometheus sees of a server, read by its own parser."""

import http.client
import socket
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from muster.server.metrics import METRICS
from servers import Server

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Page = dict[str, dict[tuple[str, ...], float]]


class OverSocket(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("muster")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))


def read(text: str) -> Page:
    """By name, and then by the labels' values; each is there once, and of its kind."""
    found: Page = {}
    kinds = {metric.name.removesuffix("_total"): metric for metric in METRICS}
    for family in text_string_to_metric_families(text):
        metric = kinds[family.name]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        for sample in family.samples:
            assert tuple(sample.labels) == metric.labels
            values = found.setdefault(sample.name, {})
            assert tuple(sample.labels.values()) not in values
            values[tuple(sample.labels.values())] = sample.value
    return found


def scraped(server: Server) -> Page:
    connection = OverSocket(server.home.socket)
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["content-type"]) == (200, CONTENT_TYPE)
    text = answer.read().decode()
    connection.close()
    return read(text)
