"""``/where``: where does my code physically run?

The map of the place, from as near as so many GPUs can be drawn; beside it the machine that somebody looks
at, down to its processes. What is chosen is in the address, so that it can be sent to somebody.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec

from muster.layout.geometry import Zoom
from muster.layout.parts import Spot
from muster.layout.states import LOOKS, State
from muster.layout.svg_marks import definitions
from muster.server.answers_map import Where as Whereabouts
from muster.server.seeing.scene import NodeNow, Scene, sentence
from muster.web.desk import Desk
from muster.web.live import Pulse
from muster.web.sheet import Sheet, Table, Visit
from muster.web.where.asked import SHORT, Asked, Colour, asked, show_words
from muster.web.where.colour import Colouring
from muster.web.where.machine import machine
from muster.web.where.picture import FAR, picture
from muster.web.where.scope import Scope
from muster.web.where.search import Hits, found, where_runs
from muster.web.where.table import COLUMNS, Rows, view

_FOLLOWED = (Colour.OWNER, Colour.EFFORT)  # what the stream does not tell of nodes and racks


class Key(msgspec.Struct, frozen=True):
    """A state in the legend: how many, whether it is shown, and the address that changes that."""

    state: str
    name: str
    glyph: str
    count: int
    is_on: bool
    url: str


class Where:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def __call__(self, visit: Visit) -> Sheet:
        wanted = asked(visit.query)
        where = await self._where(visit, wanted)
        pulse, scene, numbers = self._drawn_from()
        scope = Scope(self._desk.seeing.map(), scene, wanted)
        hits = where_runs(scope, where) if where else found(scope, wanted.find) if wanted.find else None
        said = _sentence(scope, hits, where)
        more = {**_shown(scope, hits, numbers, said, where, self._host()), "pulse": pulse}
        spot = scope.spot or scope.one_machine
        if spot is not None:
            more["machine"] = await machine(self._desk, visit.person, scope, spot, numbers)
        return Sheet(
            template="where.html",
            title="Where",
            sentence=said,
            data=partial(view, scope),
            table=Table(COLUMNS, Rows(scope, hits)),
            more=more,
            scripts=("where.css", "where.js"),
        )

    def _host(self) -> str:
        """Who knows what there is: the option of ``layout discover``, empty for this machine."""
        service = self._desk.ground.service
        return "" if service.shared is None else service.engine.name

    def _drawn_from(self) -> tuple[Pulse, Scene, Mapping[str, int]]:
        """The stream goes on from this very scene, whatever happens while the page is made."""
        live = self._desk.live
        return live.pulse(), live.scene(), live.numbers()

    async def _where(self, visit: Visit, wanted: Asked) -> Whereabouts | None:
        if wanted.job is None:
            return None
        answer: Whereabouts = await self._desk.get(visit.person, f"/jobs/{quote(wanted.job, safe='')}/where")
        return answer


def _sentence(scope: Scope, hits: Hits | None, where: Whereabouts | None) -> str:
    if where is not None:
        return where.sentence
    if hits is not None:
        return hits.sentence(scope.asked.find)
    return scope.scene.sentence if scope.is_whole else sentence(scope.tally, list(scope.nodes()))


def _shown(
    scope: Scope,
    hits: Hits | None,
    numbers: Mapping[str, int],
    said: str,
    where: Whereabouts | None,
    host: str,
) -> dict[str, Any]:
    """What the template needs besides the machine."""
    wanted, colouring = scope.asked, Colouring(scope.asked.colour, scope)
    is_alone = scope.one_machine is not None
    return {
        "asked": wanted,
        "scope": scope,
        "where": where,
        "hits": hits,
        "crumbs": scope.crumbs(),
        "keys": [_key(wanted, state, count) for state, count in scope.tally.by_state().items()],
        "undefended": scope.tally.undefended,
        "share": scope.tally.share,
        "colours": [(colour, wanted.url(colour=_said(colour))) for colour in Colour],
        "zooms": [(zoom, wanted.url(zoom=zoom)) for zoom in Zoom],
        "entries": colouring.entries,
        "follows": hits is not None or wanted.colour in _FOLLOWED,
        "show": show_words(wanted.show).replace(",", " "),
        "contradictions": scope.contradictions(),
        "loose": scope.loose(),
        "host": host,
        "is_alone": is_alone,
        "is_far": scope.root.w > FAR,
        "definitions": definitions(hues=True),
        "drawing": ""
        if is_alone or not scope.map.layout.spots
        else picture(scope, numbers, colouring, hits, said),
        "shelves": _shelves(scope) if scope.is_rack else [],
        "machine": None,
    }


def _shelves(scope: Scope) -> list[tuple[Spot, NodeNow]]:
    """The nodes of a rack, from the top, as they stand there."""
    found = [(scope.map.spots[now.name], now) for now in scope.nodes()]
    return sorted(found, key=lambda one: (-(one[0].at_u or 0), one[0].column))


def _said(colour: Colour) -> str:
    return "" if colour is Colour.STATE else colour


def _key(wanted: Asked, state: State, count: int) -> Key:
    url = wanted.url(show=show_words(wanted.show ^ {state}))
    is_on = not wanted.show or state in wanted.show
    return Key(SHORT[state], state.value, LOOKS[state].glyph, count, is_on, url)
