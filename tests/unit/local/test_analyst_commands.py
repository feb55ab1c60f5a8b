"""`doorcard rank` and `doorcard equity` as somebody at a terminal sees them."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from services.local.analyst import equity_command, rank_command

app = typer.Typer()
app.command("rank")(rank_command)
app.command("equity")(equity_command)


@pytest.fixture(autouse=True)
def no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables in memory serve all tests."""
    in_the_way = tmp_path / "cache"
    in_the_way.write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(in_the_way))
    monkeypatch.setenv("COLUMNS", "200")


def run(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == status, result.output
    return result.output


def told(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


def test_hands_are_ranked_best_first_with_equal_ones_in_one_place() -> None:
    lines = run("rank", "KsKdKh9c9d2s3h", "As Ks Qs Js Ts 2c 3d", "KdKcKh9c9d2s3h").splitlines()
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")
    ]
    assert [row[0] for row in rows] == ["1", "2", "2"]
    assert rows[0][2:] == ["a royal flush", "As Ks Qs Js Ts", "7462"]
    assert rows[1][2] == "a full house, kings over nines"


def test_ranks_as_json_name_the_order_and_what_does_not_qualify() -> None:
    found = told("rank", "9s6d4c3hAcKdKh", "8s6d4c3hAcKdKh", "--order", "low8")
    assert found["order"] == "low8"
    low, none = found["hands"]
    assert (low["name"], low["best"]) == ("an eight-six-four-three-ace low", "8s6d4c3hAc")
    assert none == {
        "cards": "9s6d4c3hAcKdKh",
        "qualifies": False,
        "rank": 0,
        "name": "",
        "best": "",
    }


def test_equities_are_exact_where_they_can_be() -> None:
    found = told("equity", "AsAhKd2c3c", "7c8c9cTd2h", "--game", "hi_lo")
    assert (found["exact"], found["seed"], found["deals"]) == (True, None, 671_580)
    assert sum(player["equity"] for player in found["players"]) == pytest.approx(1)
    shown = run("equity", "AsAhKd2c3c", "7c8c9cTd2h", "--game", "hi_lo")
    assert "hi_lo: 671,580 deals (every deal)" in shown
    assert f"{found['players'][0]['equity']:.2%}" in shown


def test_a_sample_says_its_seed_and_its_error() -> None:
    asked = ("equity", "AsAh", "-", "--dead", "Kd Kh", "--exact-deals", "0", "--seed", "5")
    found = told(*asked, "--standard-error", "0.01")
    assert (found["exact"], found["seed"]) == (False, 5)
    assert 0 < found["players"][0]["standard_error"] <= 0.01
    assert found == told(*asked, "--standard-error", "0.01")
    assert "seed 5" in run(*asked, "--standard-error", "0.01")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("rank", "AsKs"), "hand 1: has 2 cards, not 5 to 7"),
        (("rank", "AsKsQsJsTs", "AsKsQsJs1s"), "hand 2: not a card: '1s'"),
        (("rank", "AsAsQsJsTs"), "hand 1: has a card twice"),
        (("equity", "AsKs"), "hands: must be 2 to 8"),
        (("equity", "AsKs", "AsQd"), "more than once: As"),
        (("equity", "AsKs", "Qd", "--dead", "Qd"), "more than once: Qd"),
        (("equity", "AsKs", "Qd", "--community", "2c2d"), "--community: must be one card"),
        (("equity", "AsKs", "Qd", "--wild-deuces", "--game", "razz"), "--wild-deuces"),
        (("equity", "2s3s4s5s6s7s8s", *["-"] * 7), "hands: there are not enough cards"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(arguments: tuple[str, ...], reason: str) -> None:
    assert run(*arguments, status=2).startswith(reason)
