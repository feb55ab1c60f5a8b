"""A reshuffle is a function of the seed and the set of positions."""

import numpy as np

from services.shuffler.commitment import Commitment
from services.shuffler.deck import Deck, fresh_deck
from services.shuffler.generator import KernelGenerator


def a_deck() -> Deck:
    return fresh_deck(KernelGenerator())


def test_asked_again_it_is_the_same_deck_with_the_same_root() -> None:
    deck = a_deck()
    positions = [45, 3, 51, 50, 49, 48]
    first = deck.reshuffled(positions)
    assert deck.reshuffled(positions) == first
    assert deck.reshuffled(sorted(positions)) == first
    assert Commitment(deck.reshuffled(positions)).root == Commitment(first).root


def test_it_holds_exactly_the_cards_of_its_positions() -> None:
    deck = a_deck()
    positions = [0, 10, 20, 30, 40, 50]
    reshuffled = deck.reshuffled(positions)
    assert sorted(reshuffled.cards) == sorted(deck.cards[position] for position in positions)


def test_it_has_salts_and_a_reshuffle_of_its_own() -> None:
    deck = a_deck()
    reshuffled = deck.reshuffled(range(52))
    assert reshuffled.salt(0) != deck.salt(0)
    assert reshuffled.reshuffled(range(10)) != deck.reshuffled(range(10))
    assert reshuffled.cards != deck.cards


def test_other_positions_or_another_seed_give_another_order() -> None:
    deck = a_deck()
    twin = Deck(deck.cards, deck.salt_seed, bytes(32))
    assert deck.reshuffled(range(30)).cards != twin.reshuffled(range(30)).cards
    assert deck.reshuffled(range(30)).cards != deck.reshuffled(range(31)).cards[:30]


def test_over_many_seeds_every_card_is_equally_likely_at_every_place() -> None:
    size, decks = 7, 7_000
    counts = np.zeros((size, size))
    for seed in range(decks):
        deck = Deck(tuple(range(size)), bytes(32), seed.to_bytes(32))
        for place, card in enumerate(deck.reshuffled(range(size)).cards):
            counts[place, card] += 1
    expected = decks / size
    # 36 degrees of freedom; fixed seeds, so this never flickers.
    assert ((counts - expected) ** 2 / expected).sum() < 90
