"""Every query of every panel and every recording rule has data from a room under load.

A real Prometheus (Debian's) scrapes a real room in which bots play.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from doorcard.table.v1 import table_pb2, table_pb2_grpc
from grpc.aio import Channel
from rich.console import Console
from typer.testing import CliRunner

from services.local.__main__ import app
from services.local.access import open_access
from services.local.bots import bearer
from services.local.dashboards import DASHBOARDS
from services.local.demo import run_demo
from services.local.drawn import drawn, span
from services.local.panels import Dashboard
from services.local.prometheus import Prometheus, local_prometheus, room_metrics
from services.local.room import Room
from services.local.summary import Summary
from services.local.top_view import PanelBox, Top
from tests.deploy.promql import DEPLOY, known_names, metric_names
from tests.deploy.room import running_room
from tools.metrics_page import declared

pytestmark = [pytest.mark.xdist_group("dashboards"), pytest.mark.timeout(400)]
HANDS = 60
RULES = sorted((DEPLOY / "prometheus" / "rules").glob("*.yml"))
WAIT_S = 60.0
# An example that ends in a comparison has an answer only when something is wrong.
COMPARISONS = (" > 0", " == 0")


@dataclass
class Watched:
    """A Prometheus that has watched a demo, which is over."""

    home: Path
    prometheus: Prometheus
    began_s: float
    ended_s: float


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with (
        running_room(RECONCILE_EVERY_SECONDS="2") as (room, runner),
        local_prometheus(room_metrics(room.home), rules=RULES) as prometheus,
    ):
        began_s = time.time()
        summary = runner.run(demo_with_somebody_in_the_lobby(room))
        assert summary.ok, summary
        until_recorded(prometheus)
        yield Watched(room.home, prometheus, began_s, time.time())


async def demo_with_somebody_in_the_lobby(room: Room) -> Summary:
    async with open_access(room, "lobby", "lobby-operator") as access:
        watching = [
            asyncio.create_task(watch_lobby(channel, access.operator_token))
            for channel in access.tables
        ]
        try:
            return await run_demo(room, HANDS, console=Console(quiet=True))
        finally:
            for each in watching:
                each.cancel()
            await asyncio.gather(*watching, return_exceptions=True)


async def watch_lobby(channel: Channel, token: str) -> None:
    stub = table_pb2_grpc.TableServiceStub(channel)
    request = table_pb2.WatchLobbyRequest()
    async for _ in stub.WatchLobby(request, metadata=bearer(token)):
        pass


def until_recorded(prometheus: Prometheus) -> None:
    """Rules of rules need a few evaluations."""
    late_s = time.monotonic() + WAIT_S
    while missing := [name for name in recorded() if not prometheus.instant(name)]:
        assert time.monotonic() < late_s, f"no data: {missing}"
        time.sleep(0.2)


def recorded() -> list[str]:
    rules = yaml.safe_load((DEPLOY / "prometheus/rules/recording.yml").read_text())
    return [rule["record"] for group in rules["groups"] for rule in group["rules"]]


def test_queries_name_metrics_that_exist() -> None:
    known = known_names()
    for board in DASHBOARDS:
        for panel in board.panels:
            for curve in panel.curves:
                assert metric_names(curve.at("1m")) <= known, f"{board.uid}: {panel.title}"


def test_uids_and_titles_are_fixed() -> None:
    assert [board.uid for board in DASHBOARDS] == [
        "doorcard-room",
        "doorcard-latency",
        "doorcard-tables",
        "doorcard-money",
        "doorcard-settlement",
        "doorcard-dependencies",
    ]
    for board in DASHBOARDS:
        titles = [panel.title for panel in board.panels]
        assert len(set(titles)) == len(titles)


def test_grafana_finds_its_source_and_its_dashboards() -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yml").read_text())[
        "datasources"
    ]
    boards = sorted((DEPLOY / "grafana/dashboards").glob("*.json"))
    assert [path.stem for path in boards] == sorted(board.uid for board in DASHBOARDS)
    for path in boards:
        board = json.loads(path.read_text())
        assert board["uid"] == path.stem
        for panel in board["panels"]:
            assert panel["datasource"]["uid"] == source["uid"]
            for target in panel["targets"]:
                assert target["datasource"]["uid"] == source["uid"]
                assert "RATE]" not in target["expr"]


@pytest.mark.deep
@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda board: board.uid)
def test_every_query_of_every_panel_has_data(watched: Watched, board: Dashboard) -> None:
    when = span(watched.prometheus, watched.ended_s, watched.ended_s - watched.began_s, 60)
    for panel in board.panels:
        for curve in panel.curves:
            series = watched.prometheus.over(
                curve.at(when.window), when.start_s, when.end_s, when.step_s
            )
            assert any(each.points for each in series), f"{panel.title}: {curve.at(when.window)}"


@pytest.mark.deep
@pytest.mark.parametrize("name", recorded())
def test_every_recording_rule_has_data(watched: Watched, name: str) -> None:
    series = watched.prometheus.over(name, watched.began_s, watched.ended_s, 1.0)
    assert any(each.points for each in series)


@pytest.mark.deep
def test_examples_of_the_metrics_page_have_answers(watched: Watched) -> None:
    for metric in declared():
        end = "_count" if metric.kind == "histogram" else ""
        if not watched.prometheus.instant(f"{metric.shown}{end}"):
            # A healthy room never counts it, or its labels come with what happens.
            assert metric.labels, f"{metric.name} is not scraped"
            continue
        query = metric.example
        for comparison in COMPARISONS:
            query = query.removesuffix(comparison)
        series = watched.prometheus.over(query, watched.began_s, watched.ended_s, 1.0)
        assert any(each.points for each in series), f"{metric.name}: {query}"


@pytest.mark.deep
def test_the_report_draws_every_panel(watched: Watched, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    minutes = str((watched.ended_s - watched.began_s) / 60)
    options = ["--prometheus", watched.prometheus.url, "--minutes", minutes, "--json"]
    done = CliRunner().invoke(app, ["report", "--out", str(out), *options])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["empty"] == []
    assert said["panels"] == sum(len(board.panels) for board in DASHBOARDS)
    text = out.read_text(encoding="utf-8")
    assert "no data" not in text.split("</script>", 1)[1]
    # Nothing is fetched from elsewhere.
    assert 'src="http' not in text
    assert "<link" not in text


@pytest.mark.deep
def test_top_shows_every_panel(watched: Watched) -> None:
    async def every_tab() -> None:
        view = Top(watched.prometheus, watched.ended_s - watched.began_s + 60, 3600)
        async with view.run_test(size=(150, 60)) as pilot:
            for number, board in enumerate(DASHBOARDS, 1):
                await pilot.press(str(number))
                await view.look()
                await pilot.pause()
                boxes = list(view.query_one(f"#{board.uid}").query(PanelBox))
                assert len(boxes) == len(board.panels)
                for box in boxes:
                    assert "no data" not in str(box.render()), f"{board.uid}: {box.border_title}"

    asyncio.run(every_tab())


@pytest.mark.deep
def test_drawing_asks_for_every_panel_once(watched: Watched) -> None:
    asked: list[None] = []
    when = span(watched.prometheus, watched.ended_s, 60, 10)
    panels = drawn(watched.prometheus, DASHBOARDS[0], when, lambda: asked.append(None))
    assert len(panels) == len(asked) == len(DASHBOARDS[0].panels)
