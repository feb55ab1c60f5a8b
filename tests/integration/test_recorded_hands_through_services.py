"""Recorded hands played in a room of their own over `Play` streams, with a scripted shuffler."""

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from services.game.phh import parse_phh
from services.game.rulebook import Game
from services.game.staging import Staging, UnstageableError, stage
from services.local.through_services import play_through_services

HANDS: Final = Path(__file__).parents[1] / "hands"
SIXTY: Final = 60


def staged(file: Path) -> Staging:
    return stage(parse_phh(file.read_text()))


def test_a_hand_of_each_game_and_one_that_differs() -> None:
    names = ("cases/quartering-101", "online/stars-razz-0009", "wsop/wsop-2023-43-5-10")
    stagings = [staged(HANDS / f"{name}.phh") for name in names]
    right = stagings[0].expected
    wrong = replace(right, finishing_stacks=(236, 183, *right.finishing_stacks[2:]))
    *found, differs = asyncio.run(
        play_through_services([*stagings, replace(stagings[0], expected=wrong)])
    )
    assert [each.error for each in found] == ["", "", ""]
    assert [each.rake for each in found] == [0, 4, 0]
    assert found[0].finishing_stacks == right.finishing_stacks
    assert "finishing_stacks" in differs.error


def sixty() -> dict[str, Staging]:
    """Every case, then some of the razz, hi-lo, televised and other stud hands."""
    chosen: dict[str, Staging] = {}
    files = sorted(HANDS.glob("cases/*.phh"))
    for pattern in ("*razz*", "*hilo*", "*wsop*", "*stud*"):
        found = [file for file in sorted(HANDS.glob(f"*/{pattern}.phh")) if file not in files]
        files += found[:: max(1, len(found) // 14)]
    for file in files:
        try:
            chosen[file.stem] = staged(file)
        except UnstageableError:
            continue
        if len(chosen) == SIXTY:
            break
    return chosen


def test_the_sixty_are_of_all_games() -> None:
    games = Counter(each.setup.rulebook.game for each in sixty().values())
    assert sum(games.values()) == SIXTY
    assert min(games[game] for game in Game) >= 10


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_sixty_recorded_hands_come_to_their_recorded_stacks() -> None:
    stagings = sixty()
    found = asyncio.run(play_through_services(list(stagings.values())))
    errors = {name: each.error for name, each in zip(stagings, found, strict=True) if each.error}
    assert errors == {}
