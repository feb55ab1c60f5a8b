"""What a room is given to play recorded hands, and how what it says is judged."""

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from doorcard.game.v1 import game_pb2
from typer.testing import CliRunner

from services.game.phh import RakeTerms, parse_phh
from services.game.pots import Pot
from services.game.recorded_rules import rake_of
from services.game.replay import Replayed
from services.game.rulebook import Game
from services.game.staging import Staging, stage
from services.local import replay as command
from services.local import through_services
from services.local.__main__ import app
from services.local.recorded_table import outcome_of
from services.local.through_services import NotInstalledError, schedule_toml, write_room
from services.runtime.ids import uuid5_of
from services.wallet.rake import assess
from services.wallet.schedules import Schedules

HANDS = Path(__file__).parents[2] / "hands"
RIGHT = HANDS / "cases" / "quartering-101.phh"


@pytest.mark.parametrize(
    "terms",
    [
        RakeTerms(per_full=101, units=5),
        RakeTerms(percent=Decimal("2.5"), half_even=True),
        RakeTerms(percent=Decimal(5), cap=3),
        RakeTerms(percent=Decimal(5), minimum_pot=200),
        RakeTerms(percent=Decimal(5), no_rake_on_third=True),
    ],
)
def test_a_schedule_takes_what_the_record_says(terms: RakeTerms, tmp_path: Path) -> None:
    (tmp_path / "rake-0.toml").write_text(schedule_toml(terms))
    schedule = Schedules(tmp_path).find("rake-0", game=Game.RAZZ, small_bet=10)
    assert schedule is not None
    for pot in (1, 50, 70, 101, 202):
        for street in (3, 7):
            shares = assess(schedule, [Pot(pot, (0, 1))], 2, street)
            assert sum(shares) == rake_of(terms, pot, street)


def test_the_script_names_the_tables_that_will_be_made(tmp_path: Path) -> None:
    staging = stage(parse_phh(RIGHT.read_text()))
    script, schedules = write_room(tmp_path, [staging, replace(staging, rake=RakeTerms())])
    decks = json.loads(script.read_text())
    assert uuid5_of("table", "hand-1.0") in decks
    draw, hand = decks[uuid5_of("table", "hand-0.0")][:2]
    assert (len(draw["cards"]), len(hand["cards"]), hand["reshuffled"]) == (104, 104, "")
    assert [file.name for file in schedules.iterdir()] == ["rake-1.toml"]


def test_public_events_come_to_pots_winners_and_payouts() -> None:
    events = [
        game_pb2.HandEvent(uncalled=game_pb2.HandEvent.SeatAmount(seat=2, amount=10)),
        game_pb2.HandEvent(
            pots=game_pb2.HandEvent.Pots(pots=[game_pb2.Pot(amount=101, seats=[0, 2])])
        ),
        game_pb2.HandEvent(raked=game_pb2.HandEvent.Raked(shares=[1])),
        game_pb2.HandEvent(awarded=game_pb2.Award(pot=0, seat=2, amount=50)),
        game_pb2.HandEvent(awarded=game_pb2.Award(pot=0, seat=0, amount=50)),
    ]
    found = outcome_of(events, (0, 1, 2), (60, 70, 80))
    [pot] = found.pots
    assert (pot.amount, pot.eligible, pot.winners) == (101, (0, 2), (0, 2))
    assert (found.uncalled, found.rake) == ((0, 0, 10), 1)
    assert (found.payouts, found.finishing_stacks) == ((50, 0, 50), (60, 70, 80))


def judged(
    monkeypatch: pytest.MonkeyPatch, found: Sequence[Replayed], *arguments: str | Path
) -> tuple[int, str]:
    """The command, with a room that says `found`."""

    async def play(_stagings: Sequence[Staging], **_told: Any) -> Sequence[Replayed]:
        return found

    monkeypatch.setattr(command, "play_through_services", play)
    words = ["replay", "--through-services", *(str(argument) for argument in arguments)]
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.output


def test_what_the_room_says_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    right = stage(parse_phh(RIGHT.read_text())).expected
    assert judged(monkeypatch, [right], RIGHT) == (0, f"OK  {RIGHT}\n")
    status, output = judged(monkeypatch, [replace(right, error="stacks")], "--json", RIGHT)
    assert (status, json.loads(output)["error"]) == (1, "stacks")


def test_hands_that_differ_or_that_no_table_can_play_are_not_played(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.phh"
    wrong.write_text(RIGHT.read_text().replace("[235, 184,", "[236, 183,"))
    kings = HANDS / "online" / "kingsclub-stud-0001.phh"
    status, output = judged(monkeypatch, [], wrong, kings)
    assert status == 1
    assert f"DIFFERENT  {wrong}: finishing_stacks" in output
    assert f"DIFFERENT  {kings}: not through the services: an amount by a rule" in output


def test_without_the_scripted_shuffler_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(through_services, "find_spec", lambda _name: None)
    result = CliRunner().invoke(app, ["replay", "--through-services", str(RIGHT)])
    assert result.exit_code == 2
    assert "the scripted shuffler is not installed" in result.output
    assert NotInstalledError.__name__ not in result.output
    assert importlib.util.find_spec("scripted_shuffler") is not None
