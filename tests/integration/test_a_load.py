"""`doorcard load`: tables are played, the books agree, and whoever stops it gets his report."""

import json
import signal
from pathlib import Path

import pytest

from tests.integration.rooms import Command, command

FIVE_SECONDS = "0.0834"


@pytest.mark.parametrize(
    ("gateways", "pace"), [((), ("--rate", "50")), (("--gateways", "2"), ("--flat-out",))]
)
def test_ten_tables_are_played_and_the_books_agree(
    up: Command, tmp_path: Path, gateways: tuple[str, ...], pace: tuple[str, ...]
) -> None:
    file = tmp_path / "report.json"
    arguments = ("--tables", "10", "--minutes", FIVE_SECONDS, "--out", str(file))
    with command(up.home, "load", "--running", *arguments, *gateways, *pace) as load:
        assert load.wait(100) == 0, load.output()
        assert "actions/s" in load.output()
    report = json.loads(file.read_text())
    assert report["ok"], report
    assert report["tables"] == 10
    assert report["gateways"] == len(gateways)
    assert report["seconds"] == pytest.approx(5, abs=1)
    assert report["actions"] > 0
    assert report["hands"] > 0
    assert report["escrow_difference"] == report["balance_difference"] == 0
    assert 0 < report["p50_ms"] <= report["p90_ms"] <= report["p99_ms"] <= report["max_ms"]
    if pace[0] == "--rate":
        assert report["actions"] + report["owed"] == pytest.approx(250, abs=25)


def test_it_stops_in_the_middle_with_a_report_and_leaves_nothing(home: Path) -> None:
    file = home / "report.json"
    with command(home, "load", "--tables", "3", "--minutes", "60", "--out", str(file)) as load:
        load.until(lambda: "actions/s" in load.output())
        load.interrupt(signal.SIGINT)
        assert load.wait(100) == 130, load.output()
        assert "Traceback" not in load.output()
        assert load.left_running() == []
    report = json.loads(file.read_text())
    assert report["stopped"]
    assert report["ok"], report
    assert report["pace"] == "thinking"
    assert report["ledger_difference"] == report["escrow_difference"] == 0


def test_without_a_room_there_is_nothing_to_load(home: Path) -> None:
    with command(home, "load", "--running") as load:
        assert load.wait() == 2
        assert "no room runs" in load.output()
