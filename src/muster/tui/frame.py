"""A frame: all that is on the screen, as lines of spans; a function of what is known and who looks.

The app draws it again and again, ``--once`` prints one, and tests compare it with a text. Nothing here asks
anybody for anything, nor knows what a colour is.
"""

import msgspec

from muster.tui import tables
from muster.tui.cluster import NAMES, STYLES, cluster
from muster.tui.seen import JOBS, MAP, QUEUE, REVIEW, USE, Gaze, Seen
from muster.tui.spans import BOLD, DIM, PLAIN, Line, apart, cut, greyed, said
from muster.tui.when import exact, since

KEYS = "? help  / filter  ⏎ details  s stop  d defend  h hold  o order  m map  w where  g q queue  q quit"
_TITLES = {QUEUE: "Queue: who waits, and why", REVIEW: "Review", USE: "Use of the last day, by team"}
_LEAST_ROWS = 5  # that are left below the map
_MOST_LINES = 40  # of the map, where there is no screen that it has to fit


class Frame(msgspec.Struct, frozen=True):
    """Lines; and where the rows are that the cursor moves over: the line of the first, and its number."""

    lines: list[Line]
    rows_at: int = 0
    first_row: int = 0


def frame(seen: Seen, gaze: Gaze, columns: int, now: float, height: int | None = None) -> Frame:
    """As high as it needs to be, or just ``height`` lines: then the cursor is shown, and keys at the end."""
    above = [head(seen, gaze, columns, now), *_above(seen, gaze, columns, height)]
    table = _table(seen, gaze, columns, now)
    if height is None:
        lines = [*above, *table, *_more(seen, gaze)]
        return Frame(_toned([cut(line, columns) for line in lines], seen))
    heading, rows = table[:1], table[1:]
    room = max(0, height - len(above) - len(heading) - 1)
    first = _first(gaze.cursor, len(rows), room)
    shown = rows[first : first + room]
    visible = [_marked(row, first + at == gaze.cursor, columns) for at, row in enumerate(shown)]
    body = [*above, *heading, *visible]
    if len(visible) < room:
        body += _more(seen, gaze)
    body = body[: height - 1] + [[] for _ in range(height - 1 - len(body))]
    lines = _toned([cut(line, columns) for line in body], seen)
    return Frame([*lines, cut(_foot(gaze), columns)], len(above) + len(heading), first)


def _toned(lines: list[Line], seen: Seen) -> list[Line]:
    """What may be out of date looks so; but not the line that says it."""
    return lines if seen.away is None else [lines[0], *greyed(lines[1:])]


# --- The head -------------------------------------------------------------------------------------------


def head(seen: Seen, gaze: Gaze, columns: int, now: float) -> Line:
    """``muster top — delta 400 GPU  ■268 ▨61 …  used 57 % of held  1 s old``"""
    top = seen.top
    gpus = sum(top["counts"].values())
    left: Line = [("muster top — ", DIM), said(top["site"], BOLD)]
    left += [(" SIMULATED", "magenta")] if top["simulated"] else []
    left += [(f" {gpus:,} GPU ", PLAIN)] if gpus else []
    for state, count in top["counts"].items():
        if count:
            glyph = NAMES.get(state, "?")
            left += [(" ", PLAIN), (f"{glyph}{count:,}", STYLES[glyph])]
    if top["share"] is not None:
        left.append((f"  used {100 * top['share']:.0f} % of held", PLAIN))
    left += [(f"  {top['undefended']:,} undefended", "magenta")] if top["undefended"] else []
    left.append((f"  {top['running']:,} run, {top['waiting']:,} wait", PLAIN))
    left += [("  filter: ", DIM), said(gaze.match, "bold")] if gaze.match else []
    return apart(left, [_age(seen, now)], columns)


def _age(seen: Seen, now: float) -> tuple[str, str]:
    if seen.away is not None:
        return (f"not live: as of {exact(seen.at)}", "red")
    return (f"{since(seen.at, now)} old", "green")


# --- Above the table ------------------------------------------------------------------------------------


def map_room(gaze: Gaze, height: int | None) -> int:
    """How many lines the place may take."""
    if height is None:
        return _MOST_LINES
    return max(1, height - 4) if gaze.mode == MAP else max(1, (height - _LEAST_ROWS - 3) // 2)


def fits(top: dict[str, object], gaze: Gaze, columns: int, height: int | None) -> bool:
    """Whether the place can be shown as it was told, or has to be seen from farther away."""
    return len(cluster(top, columns)) <= map_room(gaze, height)


def _above(seen: Seen, gaze: Gaze, columns: int, height: int | None) -> list[Line]:
    if gaze.mode in (JOBS, MAP):
        if not gaze.is_map_shown and gaze.mode == JOBS:
            return [[]]
        lines, room = cluster(seen.top, columns), map_room(gaze, height)
        if gaze.mode == MAP and height is not None and 2 * len(lines) <= room:
            lines = [part for line in lines for part in (line, [])]
        legend = [[], _legend(seen.top)] if gaze.mode == MAP else []
        return [*lines[:room], *legend, []]
    said_of = _TITLES[gaze.mode]
    if gaze.mode == REVIEW and seen.review is not None:
        said_of = tables.closes(seen.review, seen.at)
    return [[], [(said_of, BOLD)], []]


def _legend(top: dict[str, object]) -> Line:
    each = {"gpu": "each glyph is a GPU", "node": "each glyph is a node", "rack": "each glyph is a rack"}
    line: Line = [(f"{each.get(str(top['by']), '')}, as high as its true use", DIM)]
    for state, glyph in NAMES.items():
        line += [("  ", PLAIN), (f"{glyph} {state}", STYLES[glyph])]
    return line


# --- The table ------------------------------------------------------------------------------------------


def _table(seen: Seen, gaze: Gaze, columns: int, now: float) -> list[Line]:
    if seen.mode != gaze.mode:
        return []
    if gaze.mode == JOBS:
        return tables.jobs(seen.top["jobs"], seen.sparks, columns, now)
    if gaze.mode == QUEUE:
        return tables.queue(seen.top["jobs"], columns)
    if gaze.mode == REVIEW and seen.review is not None:
        return tables.review(seen.review, columns, now)
    if gaze.mode == USE and seen.use is not None:
        return tables.use(seen.use, columns)
    return []


def _more(seen: Seen, gaze: Gaze) -> list[Line]:
    if gaze.mode not in (JOBS, QUEUE) or seen.mode != gaze.mode:
        return []
    top = seen.top
    if not top["jobs"]:
        nobody = "Nothing waits." if gaze.mode == QUEUE else "Nothing runs, and nothing waits."
        return [[("Nothing is like that." if gaze.match else nobody, DIM)]]
    return [[(f"… {top['more']:,} more", DIM)]] if top["more"] else []


def _first(cursor: int, rows: int, room: int) -> int:
    """The first row that is shown, so that the cursor is, and as much as possible with it."""
    return max(0, min(cursor - room // 2, rows - room))


def _marked(row: Line, is_chosen: bool, columns: int) -> Line:
    if not is_chosen:
        return row
    text = "".join(text for text, _ in cut(row, columns))
    return [(text, "reverse")]


def _foot(gaze: Gaze) -> Line:
    return [said(gaze.notice, "bold")] if gaze.notice else [(KEYS, DIM)]
