"""``muster simulate``: what would each policy have done with these jobs on these nodes?"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from muster.cli.main import INTERRUPTED
from muster.cli.render import one_line, progress_bar, show_figures
from muster.model.errors import BadInput

if TYPE_CHECKING:
    from muster.engines.sim import Outage
    from muster.model.node import Node
    from muster.model.policy import Policy
    from muster.simulate.records import Replay
    from muster.traces.trace import Trace

DEFAULT_POLICY = "fair"
EXAMPLES = """\b
Examples:
  muster simulate --generate jobs=400,seed=1 --nodes '6x8 A40' --compare fifo,fair,gittins
  muster simulate jobs.swf --nodes '100x0 cpus=1' --policy easy
  muster simulate pods.csv --nodes nodes.csv --set place=fgd --html page.html
  muster simulate jobs.csv --nodes '8x8' --limit 500 -o json
"""


@click.command("simulate", epilog=EXAMPLES, short_help="What would a policy do with these jobs?")
@click.argument("trace", required=False)
@click.option("--generate", metavar="SPEC", help="Make jobs up, like jobs=400,seed=1,load=0.9.")
@click.option(
    "--nodes",
    metavar="SPEC",
    help="The cluster, like '6x8 A40:48G' (nodes x GPUs), or a file of nodes; "
    "by default what the trace says.",
)
@click.option("--policy", metavar="NAME", help=f"The policy.  [default: {DEFAULT_POLICY}]")
@click.option("--compare", metavar="NAMES", help="Several policies, side by side: fifo,fair,srtf.")
@click.option("--set", "knobs", metavar="KEY=VALUE", multiple=True, help="Set a policy's knob.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Only the first N jobs.")
@click.option("--format", "form", metavar="FMT", help="The trace's format, if it can't be told.")
@click.option("--fail-every", metavar="TIME", help="Lose each node this often on average, like 30d.")
@click.option("--repair", metavar="TIME", default="4h", show_default=True, help="How long it is lost.")
@click.option(
    "--checkpoint", metavar="TIME", help="Jobs save this often, like 30m, where the trace does not say."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of luck.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="How to print the figures.",
)
@click.option("--html", metavar="FILE", type=Path, help="Write a page with plots, too.")
@click.option("--progress/--no-progress", default=True, help="A bar while it runs, on a terminal.")
def command(
    trace: str | None,
    generate: str | None,
    nodes: str | None,
    policy: str | None,
    compare: str | None,
    knobs: tuple[str, ...],
    limit: int | None,
    form: str | None,
    fail_every: str | None,
    repair: str,
    checkpoint: str | None,
    seed: int,
    output: str,
    html: Path | None,
    progress: bool,
) -> int:
    """Replay jobs under one policy or several, in virtual time, and print how it went.

    TRACE is a file of jobs in a public format, which is found out (or named with --format).
    """
    policies = _policies(policy, compare, knobs)
    if html and not html.absolute().parent.is_dir():
        raise BadInput(f"{html} can't be written: there is no folder {html.parent}")
    jobs = _saving(_jobs(trace, generate, form, limit), checkpoint)
    machines = _nodes(nodes, jobs)
    outages = _outages(machines, jobs, fail_every, repair, seed)
    replays = _replays(jobs, machines, policies, outages, seed, progress=progress)
    _print(replays, output)
    code = _exit_code(replays)
    if html:
        _write_page(html, replays)
    return code


def _policies(policy: str | None, compare: str | None, knobs: tuple[str, ...]) -> list["Policy"]:
    from muster.model.policy import preset, tuned

    if policy and compare:
        raise click.UsageError("--policy and --compare exclude each other: name one or several")
    names = compare.split(",") if compare else [policy or DEFAULT_POLICY]
    pairs = dict(_pair(knob) for knob in knobs)
    return [tuned(preset(name), pairs) for name in dict.fromkeys(map(str.strip, names))]


def _pair(knob: str) -> tuple[str, str]:
    key, equals, value = knob.partition("=")
    if not equals:
        raise BadInput(f"--set {knob!r} is not KEY=VALUE; write it like --set place=fgd")
    return key.strip(), value.strip()


def _jobs(path: str | None, spec: str | None, form: str | None, limit: int | None) -> "Trace":
    import msgspec

    if (path is None) == (spec is None):
        raise click.UsageError("name a TRACE or make one up with --generate, one of the two")
    if path is not None:
        from muster.traces.registry import read_trace

        trace = read_trace(path, form)
    else:
        from muster.traces.generate import generate

        trace = generate(spec or "")
    if not trace.jobs:
        raise BadInput(f"{path or 'the generated trace'} has no jobs to simulate")
    if trace.passed_over:
        _remark(f"{_counted(trace.passed_over)} passed over: never ran, or unknown for how long")
    return msgspec.structs.replace(trace, jobs=trace.jobs[:limit])


def _nodes(spec: str | None, trace: "Trace") -> tuple["Node", ...]:
    from muster.traces.nodespec import read_or_parse

    nodes = trace.nodes if spec is None else read_or_parse(spec)
    if not nodes:
        raise BadInput(f"{trace.name} does not tell its nodes; say them, like --nodes '6x8 A40'")
    return nodes


def _saving(trace: "Trace", every: str | None) -> "Trace":
    if every is None:
        return trace
    from muster.model.job import Checkpoint
    from muster.model.units import parse_seconds
    from muster.simulate.run import with_checkpoints

    return with_checkpoints(trace, Checkpoint(every_seconds=parse_seconds(every)))


def _outages(
    nodes: tuple["Node", ...], trace: "Trace", every: str | None, repair: str, seed: int
) -> tuple["Outage", ...]:
    if every is None:
        return ()
    from muster.model.units import parse_seconds
    from muster.simulate.run import failures

    return failures(nodes, trace, parse_seconds(every), parse_seconds(repair), seed)


def _replays(
    trace: "Trace",
    nodes: tuple["Node", ...],
    policies: list["Policy"],
    outages: tuple["Outage", ...],
    seed: int,
    *,
    progress: bool,
) -> list["Replay"]:
    """One replay per policy, up to the one that was interrupted."""
    from muster.simulate.run import replay

    replays: list[Replay] = []
    for policy in policies:
        with progress_bar(policy.name, wanted=progress) as advance:
            replays.append(replay(trace, nodes, policy, seed=seed, outages=outages, progress=advance))
        if replays[-1].interrupted:
            break
    return replays


def _print(replays: list["Replay"], output: str) -> None:
    import msgspec

    from muster.simulate.measure import measure, rows
    from muster.simulate.page import finding, setting

    reports = [measure(replay) for replay in replays]
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(reports)))
        return
    click.echo(one_line(f"{reports[0].trace}: {setting(reports[0])}"))
    click.echo(one_line(finding(reports)) + "\n")
    show_figures([report.policy for report in reports], rows(reports))


def _write_page(path: Path, replays: list["Replay"]) -> None:
    from muster.simulate.page import page

    try:
        path.write_text(page(replays), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} can't be written: {error.strerror}") from None
    _remark(f"wrote {path}")


def _exit_code(replays: list["Replay"]) -> int:
    """Remarks on what the figures don't say, and returns the exit code that it means."""
    stuck = [record for record in replays[0].records if record.infeasible is not None]
    if stuck:
        first = f"{stuck[0].id} {stuck[0].name}".strip()
        _remark(f"{_counted(len(stuck))} can never run, first: {first}: {stuck[0].infeasible}")
    if replays[-1].interrupted:
        _remark("interrupted; these are the figures so far")
        return INTERRUPTED
    return 0


def _counted(jobs: int) -> str:
    return f"{jobs:,} job" + "s" * (jobs != 1)


def _remark(sentence: str) -> None:
    click.echo(f"muster: {one_line(sentence)}", err=True)
