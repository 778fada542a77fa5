"""A simulated quarter of a 400-GPU cluster, with stewardship and without. *Synthetic*: no trace is
replayed.

The workload is made up so that its sums are the published ones of a real cluster (``quarter_sums``,
``quarter_world``); what work was worth is assumed (``quarter_lives``), and so is what people do
(``quarter_people``, ``quarter_charters``). It runs through the real loop and scheduler
(``quarter_run``), and the real rules of exits, idleness, budgets and reviews decide (``quarter_exits``,
``quarter_watch``, ``quarter_terms``, ``quarter_review``). docs/explanation/a-quarter-with-stewardship.md
says what that shows, and what it does not.
"""

from collections.abc import Callable, Iterator
from statistics import fmean, median, stdev

import msgspec

from bench.ask import Ask, Family
from bench.figures import Figure
from bench.quarter_lives import Nature
from bench.quarter_measure import REASONS, Compared, Ledger, compare, ledger
from bench.quarter_play import STOPPING, Assumed, play
from bench.quarter_run import Stage
from bench.quarter_sums import CLUSTERS, SUMMARY, Ending, Sums, files, read
from bench.quarter_world import GPUS, QUARTER_DAYS, World, generate
from muster.model.units import HOUR
from muster.steward.review.rules import ReviewRules
from muster.steward.rules import Response

SEEDS = 3
MONTH_DAYS, FORTNIGHT_DAYS, WEEK_DAYS = 28, 14, 7  # other clusters; other assumptions; a quick look
EXITS, ANSWERS = (0.25, 0.5, 1.0), (0.5, 0.8, 0.95)
_replace = msgspec.structs.replace

# What else is varied, one at a time.
OTHERWISE: dict[str, Assumed] = {
    "load 70 %": Assumed(load=0.7),
    "load 100 %": Assumed(load=1.0),
    "owners look every 4 h": Assumed(nature=Nature(looks_seconds=4 * HOUR)),
    "owners look every 24 h": Assumed(nature=Nature(looks_seconds=24 * HOUR)),
    "sessions 10 %": Assumed(nature=Nature(sessions=0.1)),
    "checkpoints 30 %": Assumed(nature=Nature(saves=0.3)),
    "checkpoints 90 %": Assumed(nature=Nature(saves=0.9)),
    "idle: warn only": Assumed(rules=_replace(STOPPING, on_idle=Response("warn"))),
    "idle window 12 h": Assumed(rules=_replace(STOPPING, idle_seconds=12 * HOUR)),
    "no review": Assumed(review=ReviewRules(schedule=None)),
}


class Quarter(msgspec.Struct):
    """The same quarter twice."""

    world: World
    without: Ledger
    with_: Ledger
    compared: Compared
    cpu_seconds: tuple[float, float]


Value = Callable[[Quarter], float]


def quarters(sums: Sums, seed: int, days: float, assumed: Assumed) -> Quarter:
    world = generate(sums, seed, days, assumed.load, assumed.nature)
    return stewarded(world, *_without(world), assumed)


def _without(world: World) -> tuple[Ledger, float]:
    outcome = Stage(world).run()
    return ledger(outcome), outcome.cpu_seconds


def stewarded(world: World, without: Ledger, cpu_seconds: float, assumed: Assumed) -> Quarter:
    outcome, steward = play(world, assumed)
    with_ = ledger(outcome)
    compared = compare(without, with_, steward.stopped, steward.asked_at, world)
    return Quarter(world, without, with_, compared, (cpu_seconds, outcome.cpu_seconds))


# --- Figures -----------------------------------------------------------------------------------------------


def measure(ask: Ask) -> Iterator[Figure]:
    for cluster in sorted(ask.files, key=CLUSTERS.index):
        sums = read(ask.files[cluster], cluster)
        is_base = cluster == CLUSTERS[0]
        if "quarter" in ask.policies:
            days, seeds = (QUARTER_DAYS, ask.seeds or SEEDS) if is_base else (MONTH_DAYS, 1)
            yield from _seeds(sums, days, seeds, ask)
        if "week" in ask.policies:
            yield from _seeds(sums, WEEK_DAYS, ask.seeds or 1, ask)
        if "sensitivity" in ask.policies and is_base:
            yield from _sensitivity(sums, ask)


def _seeds(sums: Sums, days: float, seeds: int, ask: Ask) -> Iterator[Figure]:
    played = []
    for seed in range(1, seeds + 1):
        ask.say(f"quarter {sums.cluster}, seed {seed} of {seeds}")
        played.append(quarters(sums, seed, days, Assumed()))
    yield from _calibration(sums, played)
    yield from _hours(sums.cluster, played)
    yield from _recovered(sums.cluster, played)
    yield from _waits(sums.cluster, played)
    yield _false_stops(sums.cluster, played)


def _calibration(sums: Sums, played: list[Quarter]) -> Iterator[Figure]:
    """Of the quarter without stewardship, beside what was published. The wait was fitted to nothing."""
    shown: tuple[tuple[str, str, Value, float], ...] = (
        *((f"GPU-time {e}", "%", _part(e), 100 * sums.gpu_time[e]) for e in Ending),
        ("samples without use", "%", lambda q: 100 * q.without.zero_samples, 100 * sums.zero_samples),
        ("run, mean", "s", lambda q: fmean(_runs(q)), sums.run_mean_seconds),
        ("run, median", "s", lambda q: median(_runs(q)), sums.run_median_seconds),
        ("GPUs, mean", "GPUs", _gpus_mean, sums.gpus_mean),
        ("wait, mean", "s", lambda q: q.without.waits.mean_seconds, sums.queue_mean_seconds),
    )
    for what, unit, value, published in shown:
        yield _mean("quarter-calibration", sums.cluster, what, unit, played, value, published)


def _part(ending: Ending) -> Value:
    return lambda q: 100 * q.without.by_ending[ending] / sum(q.without.by_ending.values())


def _runs(one: Quarter) -> list[float]:
    return [work.run_seconds for work in one.world.works.values() if one.world.counts(work)]


def _gpus_mean(one: Quarter) -> float:
    return fmean(work.gpus for work in one.world.works.values() if one.world.counts(work))


def _hours(cluster: str, played: list[Quarter]) -> Iterator[Figure]:
    """What every GPU-hour was, as parts of the cluster."""
    whole = fmean(_all_hours(q.world) for q in played) / 100
    for policy, ledgers in _both(played):
        beside = {
            "worthless_%": fmean(one.hours.worthless for one in ledgers) / whole,
            "again_%": fmean(one.hours.again for one in ledgers) / whole,
            "free_%": fmean(one.free for one in ledgers) / whole,
            "no_use_%": 100 * fmean(one.zero_samples for one in ledgers),
        }
        useful = fmean(one.hours.useful for one in ledgers) / whole
        yield Figure("quarter-hours", cluster, policy, useful, "% useful", beside=beside)


def _both(played: list[Quarter]) -> tuple[tuple[str, list[Ledger]], ...]:
    return ("without", [q.without for q in played]), ("with", [q.with_ for q in played])


def _all_hours(world: World) -> float:
    return GPUS * (world.end - world.begin) / HOUR


def _recovered(cluster: str, played: list[Quarter]) -> Iterator[Figure]:
    name, unit = "quarter-recovered", "GPU-hours"
    total = _mean(name, cluster, "all", unit, played, lambda q: q.compared.recovered)
    beside = {
        "of_worthless_%": fmean(100 * q.compared.recovered / q.without.hours.worthless for q in played),
        "then_free": fmean(q.compared.more_free for q in played),
        "then_useful": fmean(q.compared.more_useful for q in played),
        "then_again": fmean(q.compared.more_again for q in played),
        "cpu_minutes_without": fmean(q.cpu_seconds[0] for q in played) / 60,
        "cpu_minutes_with": fmean(q.cpu_seconds[1] for q in played) / 60,
    }
    yield _replace(total, beside=beside)
    for reason in REASONS:
        yield _mean(name, cluster, reason, unit, played, _by(reason))


def _by(reason: str) -> Value:
    return lambda q: q.compared.by_reason[reason]


def _waits(cluster: str, played: list[Quarter]) -> Iterator[Figure]:
    for policy, ledgers in _both(played):
        waits = [one.waits for one in ledgers]
        means = [one.mean_seconds for one in waits]
        beside = {
            "median_seconds": fmean(one.median_seconds for one in waits),
            "p95_seconds": fmean(one.p95_seconds for one in waits),
            "slowdown": fmean(one.slowdown_mean for one in waits),
            "slowdown_p95": fmean(one.slowdown_p95 for one in waits),
            "without_result": fmean(one.without_result for one in waits),
        }
        yield Figure("quarter-wait", cluster, policy, fmean(means), "s", _spread(means), beside=beside)


def _spread(values: list[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None


def _false_stops(cluster: str, played: list[Quarter]) -> Figure:
    figure = _mean("quarter-false", cluster, "with", "false stops", played, lambda q: q.compared.false_stops)
    return _replace(figure, beside=_stops(played))


def _stops(played: list[Quarter]) -> dict[str, float]:
    fields = ("stops", "false_sessions", "revived", "false_hours", "never_done", "spared")
    beside = {name: fmean(getattr(q.compared, name) for q in played) for name in fields}
    return beside | {"questions_per_person_week": fmean(q.compared.questions_per_person_week for q in played)}


def _mean(
    name: str,
    cluster: str,
    policy: str,
    unit: str,
    played: list[Quarter],
    value: Value,
    published: float | None = None,
) -> Figure:
    values = [value(one) for one in played]
    return Figure(name, cluster, policy, fmean(values), unit, _spread(values), published)


# --- What if ------------------------------------------------------------------------------------------------


def _sensitivity(sums: Sums, ask: Ask) -> Iterator[Figure]:
    """A fortnight, of one seed unless more are asked for. Rows share their luck: read their differences."""
    seeds = range(1, (ask.seeds or 1) + 1)
    worlds = [generate(sums, seed, FORTNIGHT_DAYS) for seed in seeds]
    usual = [(world, *_without(world)) for world in worlds]
    for exits in EXITS:
        for answers in ANSWERS:
            ask.say(f"quarter sensitivity: exits {exits:.0%}, answers {answers:.0%}")
            assumed = Assumed(exits=exits, answers=answers)
            played = [stewarded(*one, assumed) for one in usual]
            yield _varied("quarter-exits", f"exits {exits:.0%}", f"answers {answers:.0%}", played)
            if assumed == Assumed():
                yield _varied("quarter-otherwise", "as assumed", "with", played)
    for name, assumed in OTHERWISE.items():
        ask.say(f"quarter sensitivity: {name}")
        if (assumed.load, assumed.nature) == (Assumed().load, Assumed().nature):
            played = [stewarded(*one, assumed) for one in usual]
        else:
            played = [quarters(sums, seed, FORTNIGHT_DAYS, assumed) for seed in seeds]
        yield _varied("quarter-otherwise", name, "with", played)


def _varied(name: str, variant: str, policy: str, played: list[Quarter]) -> Figure:
    figure = _mean(name, variant, policy, "GPU-hours", played, lambda q: q.compared.recovered)
    beside = {
        "of_worthless_%": fmean(100 * q.compared.recovered / q.without.hours.worthless for q in played),
        "again": fmean(q.compared.more_again for q in played),
        "wait_without_seconds": fmean(q.without.waits.mean_seconds for q in played),
        "wait_with_seconds": fmean(q.with_.waits.mean_seconds for q in played),
        "stops": fmean(q.compared.stops for q in played),
        "false_stops": fmean(q.compared.false_stops for q in played),
        "never_done": fmean(q.compared.never_done for q in played),
        "questions_per_person_week": fmean(q.compared.questions_per_person_week for q in played),
    }
    return _replace(figure, beside=beside)


FAMILY = Family(
    folder="acme",
    expects=f"{SUMMARY} and util_gpu_*_quantiles.csv of AcmeTrace",
    files=files,
    policies=("quarter", "sensitivity"),
    more_policies=("week",),
    measure=measure,
)
