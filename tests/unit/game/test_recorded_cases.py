"""Hands made up to examine one rule each, with what must be accepted and refused on the way."""

from pathlib import Path

import pytest

from tests.unit.game.play import Recorded

CASES = sorted((Path(__file__).parents[2] / "hands" / "cases").glob("*.phh"))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_recorded_case_comes_out_as_recorded(path: Path) -> None:
    recorded = Recorded(path)
    recorded.play()
    hand, record = recorded.hand, recorded.record
    players = range(len(record["starting_stacks"]))
    assert [hand.stacks[seat] for seat in players] == record["finishing_stacks"]
    assert hand.result is not None
    pots = [[pot.amount, [seat + 1 for seat in pot.seats]] for pot in hand.result.pots]
    assert pots == record["_pots"]
    uncalled = dict(hand.result.uncalled)
    assert [uncalled.get(seat, 0) for seat in players] == record["_uncalled"]


def test_the_cases_are_there() -> None:
    assert len(CASES) >= 14
