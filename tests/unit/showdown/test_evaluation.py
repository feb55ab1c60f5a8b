"""Many hands at once: packed as named, and what cannot be a hand."""

import random
import struct

import pytest

from services.game.cards import parse_cards
from services.game.names import low8_name
from services.showdown.evaluation import (
    FAULTS_MAX,
    LOW8_CLASSES,
    Fault,
    Order,
    rank_hands,
    rank_packed,
)

SEED = 20240616


def hands(count: int, how_many: int = 300) -> list[tuple[int, ...]]:
    draw = random.Random(f"{SEED} {count}")
    return [tuple(draw.sample(range(52), count)) for _ in range(how_many)]


@pytest.mark.parametrize("count", [5, 6, 7])
@pytest.mark.parametrize("order", Order)
def test_packed_hands_have_the_ranks_of_named_ones(order: Order, count: int) -> None:
    cards = hands(count)
    packed = rank_packed(order, count, bytes(card for hand in cards for card in hand))
    assert isinstance(packed, bytes)
    ranks = [number for (number,) in struct.iter_unpack("<H", packed)]
    assert ranks == [ranked.rank if ranked else 0 for ranked in rank_hands(order, cards)]


def test_lows_are_named_by_the_low_that_plays() -> None:
    ranked = rank_hands(Order.LOW8, hands(7))
    assert [each and each.name for each in ranked] == [low8_name(hand) for hand in hands(7)]
    [wheel] = rank_hands(Order.LOW8, [parse_cards("5c4d3h2sAcKdKh")])
    assert wheel is not None
    assert (wheel.rank, wheel.name) == (LOW8_CLASSES, "a five-four-three-two-ace low")


def test_cards_that_cannot_be_are_found_with_hand_and_place() -> None:
    good, unknown, twice = [0, 1, 2, 3, 4], [0, 1, 52, 3, 255], [9, 1, 9, 3, 1]
    assert rank_packed(Order.HIGH, 5, bytes(good + unknown + good)) == [
        Fault(1, 2, "is not a card"),
        Fault(1, 4, "is not a card"),
    ]
    assert rank_packed(Order.HIGH, 5, bytes(good + good + twice)) == [
        Fault(2, 2, "occurs a second time"),
        Fault(2, 4, "occurs a second time"),
    ]


def test_rubbish_has_only_so_many_faults() -> None:
    for card in (0, 60):
        found = rank_packed(Order.HIGH, 7, bytes([card]) * 7_000)
        assert len(found) == FAULTS_MAX
