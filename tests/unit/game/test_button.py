"""The button: drawn for the first hand, then clockwise to the next seat that is dealt in."""

import pytest

from services.game.button import drawn_button, moved_button
from services.game.cards import parse_card


@pytest.mark.parametrize(
    ("cards", "button"),
    [(["9c", "Kd", "Qs"], 4), (["2s", "2h", "2d"], 1), (["Ks", "Ac", "Ah"], 6)],
)
def test_the_highest_card_has_the_first_button_equal_ranks_by_suit(
    cards: list[str], button: int
) -> None:
    assert drawn_button([1, 4, 6], [parse_card(card) for card in cards]) == button


@pytest.mark.parametrize("cards", [[], [3], [3, 4, 5]])
def test_as_many_cards_are_drawn_as_there_are_seats(cards: list[int]) -> None:
    with pytest.raises(ValueError, match="argument 2 is"):
        drawn_button([1, 4], cards)


@pytest.mark.parametrize(
    ("last", "seats", "button"),
    [(0, [0, 3, 7], 3), (7, [0, 3, 7], 0), (5, [0, 3, 7], 7), (7, [1, 7], 1), (3, [2, 3], 2)],
)
def test_it_goes_clockwise_to_the_next_seat_dealt_in_from_one_that_may_be_empty(
    last: int, seats: list[int], button: int
) -> None:
    assert moved_button(last, seats) == button
