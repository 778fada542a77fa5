"""What each team has held and used in all, ever: counters that never fall.

They change in the transaction that writes an entry, by what is new in it. So they are always the sum of all
entries that there ever were, also of those that were deleted since because they are old; writing an entry
again changes nothing; and looking them up costs what there are teams, not what there were attempts.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from operator import add, sub
from typing import Any

from sqlalchemy import Connection, select

from muster.store.tables import usage_attempts, usage_totals
from muster.store.usage_rows import SUMS

TOTALLED = ("job", "attempt", "team", *SUMS)  # the columns of an entry that are asked for

Row = Sequence[Any]  # these, in their order
Amounts = list[Any]  # the last of these

_entries = select(*(usage_attempts.c[name] for name in TOTALLED))
_totals = select(usage_totals.c.team, *(usage_totals.c[name] for name in SUMS))


def totals_with(connection: Connection, entries: Sequence[Row]) -> list[dict[str, Any]]:
    """The totals of the teams concerned, as they are once these entries are written. Ask before they are."""
    last = {(row[0], row[1]): row for row in entries}  # what is there in the end, under each key
    after, before = _by_team(last.values()), _by_team(_written(connection, last))
    asked = _totals.where(usage_totals.c.team.in_(sorted(after.keys() | before.keys())))
    totals = {team: amounts for team, *amounts in connection.execute(asked)}
    found = []
    for team in after.keys() | before.keys():
        total = map(add, totals.get(team, _NOTHING), after.get(team, _NOTHING))
        amounts = map(sub, total, before.get(team, _NOTHING))
        found.append({"team": team, **dict(zip(SUMS, amounts, strict=True))})
    return found


_NOTHING: Amounts = [0] * len(SUMS)


def _by_team(rows: Iterable[Row]) -> dict[str, Amounts]:
    by_team: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_team[row[2]].append(row)
    columns = {team: zip(*some, strict=True) for team, some in by_team.items()}
    return {team: list(map(sum, islice(some, 3, None))) for team, some in columns.items()}


def _written(connection: Connection, keys: Collection[tuple[str, int]]) -> list[Row]:
    found = connection.execute(_entries.where(usage_attempts.c.job.in_(sorted({job for job, _ in keys}))))
    return [row for row in found if (row[0], row[1]) in keys]
