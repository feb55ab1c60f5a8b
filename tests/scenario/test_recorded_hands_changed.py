"""Recorded hands told otherwise come out all the same: other seats, other money, fewer cards seen,
another order of writing, comments, a room that nobody knows.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from services.game.phh import parse_phh
from services.game.replay import Replayed, replay
from tests.scenario.phh_text import (
    HANDS,
    Fields,
    dealt_backwards,
    fields_of,
    hidden,
    losers_shown,
    rotated,
    scaled,
    text_of,
    with_actions,
)

FILES = sorted(HANDS.glob("*/*.phh"))
ONLINE = [file for file in FILES if file.parent.name == "online"]
FROM_ROOMS = [file for file in FILES if file.parent.name != "cases"]


def replayed(fields: Fields) -> Replayed:
    return replay(parse_phh(text_of(fields)))


def errors(files: list[Path], change: Callable[[Fields], Fields]) -> dict[str, str]:
    """What differs after the change, by file."""
    found = {file.stem: replayed(change(fields_of(file))).error for file in files}
    return {name: error for name, error in found.items() if error}


def test_in_other_seats() -> None:
    assert errors(FROM_ROOMS, lambda fields: rotated(fields, 1)) == {}


@pytest.mark.deep
@pytest.mark.parametrize("by", range(2, 8))
def test_in_all_other_seats(by: int) -> None:
    files = [file for file in FROM_ROOMS if len(fields_of(file)["starting_stacks"]) > by]
    assert errors(files, lambda fields: rotated(fields, by)) == {}
    assert errors(files, lambda fields: hidden(rotated(fields, by))) == {}


def test_with_the_down_cards_that_were_not_shown_unknown() -> None:
    assert errors(FROM_ROOMS, hidden) == {}


@pytest.mark.parametrize("as_muck", [True, False], ids=["mucked", "unsaid"])
def test_with_the_hands_of_losers_not_shown(as_muck: bool) -> None:
    files = [file for file in FROM_ROOMS if "_payouts" in fields_of(file)]
    assert errors(files, lambda fields: hidden(losers_shown(fields, as_muck))) == {}


def test_without_a_word_on_its_situations() -> None:
    def unsaid(fields: Fields) -> Fields:
        return {name: value for name, value in fields.items() if name != "_situations"}

    assert errors(FROM_ROOMS, unsaid) == {}


def test_with_comments_and_the_deals_of_a_street_in_another_order() -> None:
    def rewritten(fields: Fields) -> Fields:
        changed = dealt_backwards(fields)
        assert sorted(changed["actions"]) == sorted(fields["actions"])
        changed = with_actions(changed, lambda at, action: f"{action}  # number {at}")
        return {name: value for name, value in changed.items() if "legal" not in name}

    assert errors(FILES, rewritten) == {}


def test_from_a_room_that_nobody_knows() -> None:
    assert errors(ONLINE, lambda fields: {**fields, "_site": "elsewhere"}) == {}


@pytest.mark.deep
@pytest.mark.parametrize("site", sorted({fields_of(file)["_site"] for file in ONLINE}))
def test_from_any_other_room(site: str) -> None:
    assert errors(ONLINE, lambda fields: {**fields, "_site": site}) == {}


def test_for_other_stakes() -> None:
    """But for hands where something is left over, which is so many times as much only by chance."""
    changed = 0
    for file in FILES:
        fields = fields_of(file)
        done = replayed(fields)
        several_winners = any(len(pot.winners) > 1 for pot in done.pots)
        if several_winners or (done.rake and len(done.pots) > 1):
            continue
        changed += 1
        hundredfold = replayed(scaled(fields, 100))
        assert hundredfold.error == ""
        assert hundredfold.finishing_stacks == tuple(100 * each for each in done.finishing_stacks)
    assert changed > 220
