"""What is asked of the bench: a family of figures, the files it is measured on, and how.

A family measures every file of its format that lies in its folder, so other traces of the same
kind can be measured by putting them there. The folder is given itself, or one above it that has
all families' folders.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from bench.figures import Figure
from muster.model.errors import BadInput, UnknownChoice
from muster.model.node import Node
from muster.model.policy import Policy
from muster.simulate.records import Replay
from muster.simulate.run import replay
from muster.traces.lines import Cells, cells, load
from muster.traces.trace import Trace

Say = Callable[[str], None]  # tells somebody who watches how far it is
ALL = "all"


class NoData(BadInput):
    """A family's files are not there."""


class Ask(msgspec.Struct, frozen=True):
    """One request, checked."""

    files: dict[str, Path]  # by variant
    policies: tuple[str, ...]
    seeds: int | None  # None: as many as the family holds for right
    workers: int
    say: Say


class Family(msgspec.Struct, frozen=True):
    """Figures that are measured on one kind of file."""

    folder: str  # what its folder is called beside those of the others
    expects: str  # what its files are called
    files: Callable[[Path], dict[str, Path]]  # by variant
    policies: tuple[str, ...]  # measured unless others are named
    more_policies: tuple[str, ...]  # measured when named
    measure: Callable[[Ask], Iterator[Figure]]

    def files_in(self, data: Path | None) -> dict[str, Path]:
        """All its files, from its own folder or the one above."""
        if data is None:
            raise NoData(
                f"expected a folder with {self.expects}; name it with --data or MUSTER_TRACES"
                " (docs/benchmarks.md says where to get the data)"
            )
        inner = data / self.folder
        found = self.files(inner if inner.is_dir() else data)
        if not found:
            raise NoData(f"expected {self.expects} in {data} or {inner}; there is none")
        return dict(sorted(found.items()))

    def ask(
        self,
        data: Path | None,
        *,
        variants: Sequence[str] = (),
        policies: Sequence[str] = (),
        seeds: int | None = None,
        workers: int = 1,
        say: Say = lambda _: None,
    ) -> Ask:
        """A request for some of the variants and policies; for all of the usual if none is named."""
        files = self.files_in(data)
        known = (*self.policies, *self.more_policies)
        if ALL in policies:
            policies = known
        return Ask(
            {name: files[name] for name in chosen("variant", variants, tuple(files))},
            chosen("policy", policies, known) if policies else self.policies,
            seeds,
            workers,
            say,
        )


def chosen(what: str, asked: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Those of ``known`` that are asked for; all if nothing is."""
    for name in asked:
        if name not in known:
            raise UnknownChoice(what, name, list(known))
    return tuple(name for name in known if name in asked or not asked)


def rows_of(path: Path, columns: Sequence[str]) -> list[Cells]:
    """The named columns of a table that may lie beside the traces; no rows if it does not."""
    return [row for _, row in cells(load(str(path)), columns)] if path.is_file() else []


def replayed(trace: Trace, nodes: tuple[Node, ...], policy: Policy, what: str, say: Say) -> Replay:
    """The whole trace under the policy. Half a replay makes no figure, so Ctrl-C ends the bench."""

    def progress(ended: int, jobs: int, _now: float) -> None:
        say(f"{what}: {ended:,} of {jobs:,} jobs")

    found = replay(trace, nodes, policy, progress=progress)
    if found.interrupted:
        raise KeyboardInterrupt
    return found
