"""``python -m bench NAME``: measures one family of figures, or all, and prints or writes them."""

import importlib
import sys
from collections.abc import Iterator
from inspect import signature
from pathlib import Path

import click
import msgspec

from bench import write
from bench.ask import ALL, Family, NoData
from bench.figures import Figure
from muster.cli.main import INTERRUPTED
from muster.cli.text import one_line
from muster.model.errors import BadInput, MusterError

# Each module has its Family as FAMILY.
FAMILIES = ("placement", "backfill", "jct", "simulate", "prediction", "quarter")
WITHOUT_DATA = (
    "cycle",
    "dispatch",
    "meter",
    "findings",
    "bottleneck",
    "rightsize",
    "steward",
    "ending",
    "budget",
    "slurm",
    "page",
    "slurm_handover",
)  # each has a ``measure``


class Options(msgspec.Struct, frozen=True):
    """How to measure."""

    data: Path | None
    variants: tuple[str, ...]
    policies: tuple[str, ...]
    seeds: int | None
    workers: int


@click.command("bench", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("name", type=click.Choice([*FAMILIES, *WITHOUT_DATA, ALL]))
@click.option(
    "--data",
    envvar="MUSTER_TRACES",
    type=click.Path(path_type=Path),
    help="The family's folder, or one with openb/, hpc/, muri/, philly/ and acme/ in it.",
)
@click.option("--variant", "variants", multiple=True, metavar="V", help="Only these, like default.")
@click.option("--policy", "policies", multiple=True, metavar="P", help="Only these, or 'all'.")
@click.option("--seeds", type=click.IntRange(min=1), metavar="N", help="Over how many to average.")
@click.option("--jobs", "workers", type=click.IntRange(min=1), default=1, metavar="N", help="Processes.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option(
    "--write", "page", type=click.Path(path_type=Path), help="Rewrite the tables of this page, too."
)
def command(
    name: str,
    data: Path | None,
    variants: tuple[str, ...],
    policies: tuple[str, ...],
    seeds: int | None,
    workers: int,
    output: str,
    page: Path | None,
) -> None:
    """Measure NAME on public traces, beside what was published.

    Several variants or policies are separated by commas.
    """
    options = Options(data, _names(variants), _names(policies), seeds, workers)
    if name == ALL and (options.variants or options.policies):
        raise click.UsageError("--variant and --policy choose within one family, not within 'all'")
    if page is not None and not page.is_file():
        raise BadInput(f"expected a page to write to, with tables' markers; {page} is none")
    measured: list[Figure] = []
    for family in (*FAMILIES, *WITHOUT_DATA) if name == ALL else (name,):
        figures = _measured(family, options, optional=name == ALL, show=output == "table")
        measured += figures
        if page is not None:
            _write(page, figures)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(measured)))


def _names(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.strip() for names in given for name in names.split(",") if name.strip())


def _measured(name: str, options: Options, *, optional: bool, show: bool) -> list[Figure]:
    """One family's figures, shown as they come. Without data an optional one is passed over."""
    measured = []
    try:
        for figure in _figures(name, options):
            _say("")
            if show:
                click.echo(write.line(figure))
            measured.append(figure)
    except NoData as missing:
        if not optional:
            raise
        _remark(f"{name} is passed over: {missing}")
    return measured


def _figures(name: str, options: Options) -> Iterator[Figure]:
    module = importlib.import_module(f"bench.{name}")
    if name in WITHOUT_DATA:
        offered = {"say": _say, "remark": _remark, "seeds": options.seeds}
        takes = signature(module.measure).parameters
        given = {key: value for key, value in offered.items() if value is not None and key in takes}
        figures: Iterator[Figure] = module.measure(**given)
        return figures
    family: Family = module.FAMILY
    ask = family.ask(
        options.data,
        variants=options.variants,
        policies=options.policies,
        seeds=options.seeds,
        workers=options.workers,
        say=_say,
    )
    return family.measure(ask)


def _write(page: Path, figures: list[Figure]) -> None:
    text = page.read_text(encoding="utf-8")
    page.write_text(write.rewrite(text, figures), encoding="utf-8")
    if missing := write.homeless(text, figures):
        _remark(f"{page} has no table for {', '.join(missing)}")


def _say(text: str) -> None:
    """How far it is, in one line that the next replaces; nothing where nobody watches."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[2K{text}", nl=False, err=True)


def _remark(sentence: str) -> None:
    click.echo(f"bench: {one_line(sentence)}", err=True)


def run(arguments: list[str]) -> int:
    """Runs a command line, and returns its exit code."""
    try:
        command.main(arguments, prog_name="python -m bench", standalone_mode=False)
    except MusterError as error:
        _remark(str(error))
        return error.exit_code
    except click.UsageError as error:
        _remark(error.format_message())
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
