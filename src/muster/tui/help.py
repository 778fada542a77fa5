"""The keys, for who asks."""

from muster.tui.cluster import NAMES, STYLES
from muster.tui.spans import BOLD, DIM, PLAIN, Line

KEYS = (
    ("↑ ↓  PgUp PgDn  Home End", "move"),
    ("Enter", "all about the job: charter, cost, why it waits, where, last lines"),
    ("Esc", "out, and back to the jobs; in the jobs, no filter any more"),
    ("/", "filter: words in id, name, owner, team, effort, purpose or node"),
    ("o", "another order: held, idle, owner, ends, new"),
    ("m", "the map above the jobs, or not"),
    ("w, g w", "where: the map on the whole screen"),
    ("g q", "the queue: who waits, and why"),
    ("g r", "the review: what should stop"),
    ("g u", "use of the last day, by team"),
    ("g j", "the jobs"),
    ("s", "stop the job; asks why"),
    ("d", "defend the job; asks why, and until when"),
    ("h", "hold a waiting job, or release it"),
    ("?", "this"),
    ("q, Ctrl-C", "quit"),
)


def helped() -> list[Line]:
    lines: list[Line] = [[("muster top", BOLD)], []]
    lines += [[(f"{keys:<26}", BOLD), (about, PLAIN)] for keys, about in KEYS]
    lines += [[], [("A glyph is as high as what is truly used: ▁ nothing, ▇ all. · is free.", PLAIN)]]
    lines += [[part for state, glyph in NAMES.items() for part in ((f"{glyph} {state}  ", STYLES[glyph]),)]]
    lines += [[("? after a job's id: nobody defends it, and the review will stop it.", "magenta")]]
    return [*lines, [], [("Esc closes this", DIM)]]
