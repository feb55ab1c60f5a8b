"""What `doorcard up`, `demo` and `top` say for people and for programs."""

import json
import math
from typing import Any

import pytest

from services.local.announcer import Announcer
from services.local.dashboards import DASHBOARDS
from services.local.prometheus import Series
from services.local.supervisor import Change, State
from services.local.top import look

CHANGES = (
    Change("wallet", State.STARTING),
    Change("wallet", State.READY),
    Change("wallet", State.WAITING, "was killed by signal 9"),
    Change("wallet", State.READY),
)


class Room:
    """Where things are."""

    home = "/somewhere"

    def names(self) -> list[str]:
        return ["wallet"]

    def address(self, name: str) -> str:
        return f"{name}:1"

    def metrics_url(self, name: str) -> str:
        return f"http://{name}:2/metrics"


def said(capsys: pytest.CaptureFixture[str], *, as_json: bool) -> list[str]:
    room: Any = Room()
    announcer = Announcer(as_json=as_json)
    for change in CHANGES:
        announcer.change(change)
    announcer.wait(5)
    announcer.up(room)
    return capsys.readouterr().out.splitlines()


def test_people_are_told_when_a_process_is_up_and_when_it_is_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = said(capsys, as_json=False)
    assert [line.split("s  ")[-1] for line in lines[:3]] == [
        "wallet is up",
        "wallet was killed by signal 9: waiting",
        "wallet is up again",
    ]
    assert "waiting 5 s at most" in lines[3]
    assert "DOORCARD_HOME" in lines[3], "what else may be done"
    assert "--running" in lines[3]
    assert lines[-1] == "The room is up. Ctrl-C stops it."


def test_programs_get_an_object_a_line_and_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    *changes, wait, up = [json.loads(line) for line in said(capsys, as_json=True)]
    assert [(each["process"], each["state"]) for each in changes] == [
        ("wallet", str(change.state)) for change in CHANGES
    ]
    assert changes[2]["detail"] == "was killed by signal 9"
    assert wait["waiting_s"] == 5
    assert up == {
        "home": "/somewhere",
        "processes": [
            {"process": "wallet", "address": "wallet:1", "metrics": "http://wallet:2/metrics"}
        ],
    }


def test_one_look_has_the_last_value_of_every_panel_s_series() -> None:
    class Source:
        def scrape_interval_s(self) -> float:
            return 1.0

        def over(self, _query: str, start_s: float, end_s: float, _step_s: float) -> list[Series]:
            return [Series({}, ((start_s, 1.0), (end_s, 2.5))), Series({}, ((end_s, math.inf),))]

    source: Any = Source()
    found = look(source, 60)
    assert len(found) == sum(len(board.panels) for board in DASHBOARDS)
    json.dumps(found, allow_nan=False)
    for each in found:
        assert {one["value"] for one in each["series"]} == {2.5, None}
