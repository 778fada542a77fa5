"""``muster simulate``: what would each policy have done with these jobs on these nodes?"""

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from muster.cli.main import INTERRUPTED
from muster.cli.parse import Parser, Usage, whole_number
from muster.cli.render import progress_bar, show_figures
from muster.cli.text import one_line, remark
from muster.model.errors import BadInput

if TYPE_CHECKING:
    from muster.engines.sim import Outage
    from muster.model.node import Node
    from muster.model.policy import Policy
    from muster.simulate.records import Replay
    from muster.traces.trace import Trace

DEFAULT_POLICY = "fair"
EXAMPLES = """
muster simulate --generate jobs=400,seed=1 --nodes '6x8 A40' --compare fifo,fair,gittins
muster simulate jobs.swf --nodes '100x0 cpus=1' --policy easy
muster simulate pods.csv --nodes nodes.csv --set place=fgd --html page.html
muster simulate jobs.csv --nodes '8x8' --limit 500 -o json
"""


def define(parser: Parser) -> None:
    parser.describe(
        "Replay jobs under one policy or several, in virtual time, and print how it went.\n\n"
        "TRACE is a file of jobs in a public format, which is found out (or named with --format).",
        EXAMPLES,
    )
    add = parser.add_argument
    add("trace", metavar="TRACE", nargs="?", help="the file of jobs")
    add("--generate", metavar="SPEC", help="make jobs up, like jobs=400,seed=1,load=0.9")
    nodes = (
        "the cluster, like '6x8 A40:48G' (nodes x GPUs), or a file of nodes; by default what the trace says"
    )
    add("--nodes", metavar="SPEC", help=nodes)
    add("--policy", metavar="NAME", help=f"the policy (default: {DEFAULT_POLICY})")
    add("--compare", metavar="NAMES", help="several policies, side by side: fifo,fair,srtf")
    add("--set", dest="knobs", metavar="KEY=VALUE", action="append", default=[], help="set a policy's knob")
    add("--limit", metavar="N", type=whole_number(1), help="only the first N jobs")
    add("--format", metavar="FMT", help="the trace's format, if it can't be told")
    add("--fail-every", metavar="TIME", help="lose each node this often on average, like 30d")
    add("--repair", metavar="TIME", default="4h", help="how long it is lost (default: 4h)")
    add("--checkpoint", metavar="TIME", help="jobs save this often, like 30m, where the trace does not say")
    add("--seed", metavar="N", type=whole_number(0), default=0, help="of luck (default: 0)")
    add("-o", "--output", choices=["table", "json"], default="table", help="how to print the figures")
    add("--html", metavar="FILE", type=Path, help="write a page with plots, too")
    add("--progress", action="store_true", default=True, help="a bar while it runs, on a terminal (default)")
    add("--no-progress", dest="progress", action="store_false", help="no bar")


def run(given: Namespace) -> int:
    html: Path | None = given.html
    policies = _policies(given.policy, given.compare, tuple(given.knobs))
    if html and not html.absolute().parent.is_dir():
        raise BadInput(f"{html} can't be written: there is no folder {html.parent}")
    jobs = _saving(_jobs(given.trace, given.generate, given.format, given.limit), given.checkpoint)
    machines = _nodes(given.nodes, jobs)
    outages = _outages(machines, jobs, given.fail_every, given.repair, given.seed)
    replays = _replays(jobs, machines, policies, outages, given.seed, progress=given.progress)
    _print(replays, given.output)
    code = _exit_code(replays)
    if html:
        _write_page(html, replays)
    return code


def _policies(policy: str | None, compare: str | None, knobs: tuple[str, ...]) -> list["Policy"]:
    from muster.model.policy import preset, tuned

    if policy and compare:
        raise Usage(
            "--policy and --compare exclude each other: name one or several (see 'muster simulate --help')"
        )
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
        raise Usage(
            "name a TRACE or make one up with --generate, one of the two (see 'muster simulate --help')"
        )
    if path is not None:
        from muster.traces.registry import read_trace

        trace = read_trace(path, form)
    else:
        from muster.traces.generate import generate

        trace = generate(spec or "")
    if not trace.jobs:
        raise BadInput(f"{path or 'the generated trace'} has no jobs to simulate")
    if trace.passed_over:
        remark(f"{_counted(trace.passed_over)} passed over: never ran, or unknown for how long")
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
        print(msgspec.json.format(msgspec.json.encode(reports)).decode())
        return
    print(one_line(f"{reports[0].trace}: {setting(reports[0])}"))
    print(one_line(finding(reports)) + "\n")
    show_figures([report.policy for report in reports], rows(reports))


def _write_page(path: Path, replays: list["Replay"]) -> None:
    from muster.simulate.page import page

    try:
        path.write_text(page(replays), encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} can't be written: {error.strerror}") from None
    remark(f"wrote {path}")


def _exit_code(replays: list["Replay"]) -> int:
    """Remarks on what the figures don't say, and returns the exit code that it means."""
    stuck = [record for record in replays[0].records if record.infeasible is not None]
    if stuck:
        first = f"{stuck[0].id} {stuck[0].name}".strip()
        remark(f"{_counted(len(stuck))} can never run, first: {first}: {stuck[0].infeasible}")
    if replays[-1].interrupted:
        remark("interrupted; these are the figures so far")
        return INTERRUPTED
    return 0


def _counted(jobs: int) -> str:
    return f"{jobs:,} job" + "s" * (jobs != 1)
