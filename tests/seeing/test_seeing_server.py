"""What pages are drawn from, from a real server."""

import time
from collections.abc import Iterator

import pytest

from muster.client import Client, Refused
from servers import Server, View, until

CONFIGURATION = """
[monitor]
period = "1s"
[node]
cpus = 4
memory = "8G"
gpus = 2
[team.lab]
quota = {gpus = 1}
[team.vision]
parent = "lab"
"""
PURPOSE = "Does 8B beat 3B on the held-out set?"
SOON = time.strftime("%Y-%m-%d", time.localtime(time.time() + 9 * 86_400))


class World:
    """Two that run, one that is over, and some that wait."""

    def __init__(self, server: Server, client: Client) -> None:
        self.server, self.client = server, client
        told = {"cpus": 1, "gpus": 1}
        self.over = client.wait(client.submit(["sh", "-c", "exit 3"], name="over", **told)["id"])["id"]
        self.fit = client.submit(
            ["sh", "-c", "sleep 300; true"], name="fit", team="vision", purpose=PURPOSE, **told
        )["id"]
        self.other = client.submit(["sleep", "300"], name="other", team="lab", time="2h", **told)["id"]
        until(lambda: client.job(self.other)["state"] == "RUNNING", "both to run")
        self.wide = client.submit(["true"], name="wide", cpus=1, gpus=2, team="lab", time="1h")["id"]
        self.many = client.submit(["true"], array="1-5", team="lab", **told)["id"]
        self.held = client.submit(["true"], hold=True)["id"]
        client.defend(self.fit, because="the paper needs it", until=SOON)
        until(lambda: client.job(self.fit)["used"], "the first sample")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    server = Server("--http", "127.0.0.1:0")
    server.home.configuration.write_text(CONFIGURATION)
    with server, server.client() as client:
        yield World(server, client)


def nodes_of(tree: View) -> dict[str, View]:
    found, below = {}, [tree]
    while below:
        node = below.pop()
        found[f"{node['kind']} {node['id']}"] = node
        below += node["children"]
    return found


def test_use_as_a_tree_has_the_team_the_job_its_tick_and_who_defends_it(world: World) -> None:
    tree = world.client.use_tree(since="1h")
    nodes = nodes_of(tree["total"])
    fit, lab = nodes[f"job {world.fit}"], nodes["team lab"]
    assert fit["defended"]["because"] == "the paper needs it"
    assert nodes["team vision"] in lab["children"]
    assert lab["quota_gpu_seconds"] == pytest.approx(3600.0)
    assert lab["gpu_held_seconds"] >= fit["gpu_held_seconds"] > 0
    assert fit["gpu_used_seconds"] is None  # no meter reads these GPUs
    assert tree["drawn_by"] == "gpu"
    assert tree["sentence"].startswith("In these 1h 3 jobs held ")


def test_use_by_purpose_and_by_owner_has_them_at_the_top(world: World) -> None:
    purposes = {node["id"] for node in world.client.use_tree(by="purpose")["total"]["children"]}
    assert purposes == {PURPOSE, None}
    owners = [node["id"] for node in world.client.use_tree(by="owner")["total"]["children"]]
    assert owners == [world.client.whoami()["name"]]


def test_use_over_time_ends_with_what_is_held_now(world: World) -> None:
    series = world.client.use_series(since="10m", step="1m")
    assert (series["unit"], series["step_seconds"], series["capacity"]) == ("gpu", 60, 2.0)
    assert len(series["at"]) == len(series["total"]["held"]) == len(series["total"]["used"])
    assert series["total"]["held"][-1] > 0
    assert {line["group"] for line in series["lines"]} == {"lab", "vision", ""}
    cpus = world.client.use_series(since="10m", unit="cpu", by="owner")
    assert (cpus["unit"], cpus["metric"]) == ("cpu", "cpu time")
    assert cpus["total"]["used"][-1] is not None


def test_the_queue_says_who_waits_in_which_order_for_what(world: World) -> None:
    queue = world.client.queue()
    rows = {row["name"]: row for row in queue["jobs"] if row["id"] != world.held}
    assert (queue["waiting"], queue["more"]) == (7, 0)
    assert rows["wide"]["wants"] == "2 × GPU"
    assert rows["wide"]["reason"]["sentence"]
    assert rows["true"]["id"] == f"{world.many}_[1-5]"
    assert {row["position"] for row in queue["jobs"]} >= {1, None}
    assert world.client.queue(owner="nobody-at-all")["jobs"] == []
    first = world.client.queue(team="lab", limit=1)
    assert first["more"] + first["jobs"][0]["count"] == first["waiting"] == 6


def test_an_estimate_that_somebody_asked_for_is_kept_with_its_age(world: World) -> None:
    estimate = world.client.why(world.wide)["estimate"]

    def kept() -> View | None:
        row = next(row for row in world.client.queue()["jobs"] if row["id"] == world.wide)
        return row["estimate"]

    if estimate is not None:
        until(kept, "the estimate to be written down")
        said = kept()
        assert said is not None
        assert said["age_seconds"] >= 0
        assert said["probability"] == estimate["probability"]


@pytest.mark.parametrize("by", ["node", "gpu", "team", "owner"])
def test_time_has_what_was_what_is_and_what_is_likely(world: World, by: str) -> None:
    line = world.client.timeline(since="1h", by=by)
    bars = [bar for row in line["rows"] for bar in row["bars"]]
    kinds = {(bar.get("job"), bar["kind"]) for bar in bars}
    assert {(world.over, "past"), (world.fit, "running"), (world.other, "predicted")} <= kinds
    assert next(bar for bar in bars if bar.get("job") == world.over)["how"] == "failed"
    assert line["jobs"][world.fit] == {
        "name": "fit",
        "owner": world.client.whoami()["name"],
        "team": "vision",
        "gpus": 1.0,
    }
    limited = next(bar for bar in bars if bar.get("job") == world.other and bar["kind"] == "predicted")
    assert limited["latest"] == pytest.approx(world.client.job(world.other)["started_at"] + 7200, abs=5)


def test_an_outage_is_a_bar_of_its_own(world: World) -> None:
    node = world.client.nodes()[0]["name"]
    world.client.drain_node(node, "a new disk")
    world.client.resume_node(node)
    bars = [bar for row in world.client.timeline(node=node)["rows"] for bar in row["bars"]]
    assert [bar["how"] for bar in bars if bar["kind"] == "out"] == ["drained"]


def test_the_stack_goes_up_to_jobs_and_of_one_job_up_to_its_processes(world: World) -> None:
    place = world.client.stack()
    assert place["layers"] == ["site", "rack", "node", "job"]
    until(lambda: "process" in world.client.stack(job=world.fit)["layers"], "its processes")
    one = world.client.stack(job=world.fit)
    assert one["layers"][:3] == ["site", "rack", "node"]
    assert one["layers"][-2:] == ["job", "process"]
    below, names = [one["bottom"]], []
    while below:
        layer = below.pop()
        below += layer.get("children", [])
        names += [layer.get("name", "")] * (layer["layer"] == "process")
    assert "sleep 300" in names


def test_a_stack_of_what_does_not_run_or_is_not_there_is_refused(world: World) -> None:
    for asked, words in (
        ({"job": world.held}, "does not run"),
        ({"job": "999"}, "there is no job"),
        ({"node": "nowhere"}, "there is no node"),
    ):
        with pytest.raises(Refused, match=words):
            world.client.stack(**asked)


def test_a_jobs_story_is_told_and_shown(world: World) -> None:
    story = world.client.story(world.fit)
    assert [line["what"] for line in story["lines"]] == ["submitted", "started", "defended"]
    assert story["lines"][0]["text"] == f"1 × GPU: {PURPOSE}"
    said = world.server.muster("show", world.over).stdout
    assert "\nstory\n" in said
    assert "ended      failed, exit code 3" in said
    member = world.client.story(f"{world.many}_2")
    assert [line["text"] for line in member["lines"]] == ["1 × GPU, 5 members"]


def test_what_is_no_moment_is_refused_in_words(world: World) -> None:
    for path in ("/use/tree", "/use/series", "/timeline"):
        with pytest.raises(Refused, match="is not a moment"):
            world.client.get(f"{path}?since=yesterday")
