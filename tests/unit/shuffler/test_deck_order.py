"""Where the order of a deck comes from: every card equally likely at every place."""

import math
import os
import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from services.shuffler.deck import SIZE, Deck, fresh_deck, shuffled
from services.shuffler.generator import KernelGenerator

Shuffle = Callable[[], Sequence[int]]

DEGREES = (SIZE - 1) ** 2
"""A table of card by position whose rows and columns all add up to the number of shuffles."""


def fair_shuffle() -> Sequence[int]:
    return shuffled(range(SIZE), os.urandom)


def swap_with_any() -> Sequence[int]:
    """The faulty shuffle of the reports: every place swaps with any place, done or not."""
    order = list(range(SIZE))
    source = random.SystemRandom()
    for place in range(SIZE):
        other = source.randrange(SIZE)
        order[place], order[other] = order[other], order[place]
    return order


def chi_square_deviations(shuffle: Shuffle, shuffles: int) -> float:
    """Standard deviations by which chi-square over card x position is off its mean of 51 x 51."""
    orders = np.array([shuffle() for _ in range(shuffles)])
    counts = np.array([np.bincount(orders[:, place], minlength=SIZE) for place in range(SIZE)])
    expected = shuffles / SIZE
    # The 52 x 52 cells of a uniform permutation have chi-square with 51^2 degrees times 52/51.
    statistic = float(((counts - expected) ** 2 / expected).sum()) * (SIZE - 1) / SIZE
    return (statistic - DEGREES) / math.sqrt(2 * DEGREES)


def test_every_card_is_equally_likely_at_every_place() -> None:
    assert abs(chi_square_deviations(fair_shuffle, 20_000)) < 6


def test_the_same_count_finds_a_shuffle_that_swaps_with_any_place() -> None:
    assert chi_square_deviations(swap_with_any, 20_000) > 20


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_520_000_shuffles_are_even_over_card_and_position() -> None:
    assert abs(chi_square_deviations(fair_shuffle, 520_000)) < 6


@pytest.mark.deep
@pytest.mark.timeout(600)
def test_520_000_shuffles_that_swap_with_any_place_are_not() -> None:
    assert chi_square_deviations(swap_with_any, 520_000) > 500


def test_all_orders_of_three_cards_are_equally_likely() -> None:
    tally: dict[tuple[int, ...], int] = {}
    for _ in range(6_000):
        order = shuffled((0, 1, 2), os.urandom)
        tally[order] = tally.get(order, 0) + 1
    assert len(tally) == 6
    assert sum((seen - 1000) ** 2 / 1000 for seen in tally.values()) < 50


def test_bytes_that_would_favour_low_choices_are_thrown_away() -> None:
    # 250 is the first byte that three choices must refuse less one: 255 = 3 x 85.
    taken = iter([b"\xff" + b"\x02", b"\x00" * 10])
    assert shuffled((0, 1, 2), lambda _: next(taken)) == (1, 0, 2)


def test_a_fresh_deck_holds_every_card_once_and_two_seeds_of_its_own() -> None:
    generator = KernelGenerator()
    first, second = fresh_deck(generator), fresh_deck(generator)
    assert sorted(first.cards) == list(range(SIZE))
    assert first.cards != second.cards
    assert (
        len({first.salt_seed, first.reshuffle_seed, second.salt_seed, second.reshuffle_seed}) == 4
    )


def test_decks_made_in_the_same_millisecond_share_nothing() -> None:
    generators = [KernelGenerator() for _ in range(50)]
    decks = [fresh_deck(generator) for generator in generators]
    assert len({deck.cards[:12] for deck in decks}) == len(decks)
    assert len({deck.salt_seed for deck in decks}) == len(decks)


def test_a_deck_never_shows_its_cards_in_a_representation() -> None:
    assert repr(fresh_deck(KernelGenerator())) == "Deck(52 cards)"


@pytest.mark.parametrize("cards", [(), (1, 1), (52,), tuple(range(53))])
def test_a_deck_of_impossible_cards_is_refused(cards: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"card"):
        Deck(cards, bytes(32), bytes(32))
