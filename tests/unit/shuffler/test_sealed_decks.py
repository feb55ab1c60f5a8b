"""A sealed deck opens for its own hand at its own table under a known key, and not otherwise."""

import pytest

from services.runtime.sealing import SealBroken, SealKeys, new_key
from services.shuffler.deck import Deck, fresh_deck
from services.shuffler.generator import KernelGenerator
from services.shuffler.seal import SEALED_BYTES_MAX, open_deck, seal_deck

KEYS = SealKeys("room", {"deck-1": new_key()})
DECK = fresh_deck(KernelGenerator())
SEALED = seal_deck(KEYS, DECK, table_id="t1", hand_id="h1")


def test_it_opens_to_the_same_deck() -> None:
    assert open_deck(KEYS, SEALED, table_id="t1", hand_id="h1") == DECK


def test_a_short_deck_opens_too() -> None:
    short = DECK.reshuffled(range(4))
    sealed = seal_deck(KEYS, short, table_id="t1", hand_id="h1")
    assert open_deck(KEYS, sealed, table_id="t1", hand_id="h1") == short


@pytest.mark.parametrize(("table_id", "hand_id"), [("t2", "h1"), ("t1", "h2"), ("h1", "t1")])
def test_it_does_not_open_for_another_table_or_hand(table_id: str, hand_id: str) -> None:
    with pytest.raises(SealBroken):
        open_deck(KEYS, SEALED, table_id=table_id, hand_id=hand_id)


def test_no_changed_byte_goes_unnoticed() -> None:
    for place in range(len(SEALED)):
        changed = bytearray(SEALED)
        changed[place] ^= 0x40
        with pytest.raises(SealBroken):
            open_deck(KEYS, bytes(changed), table_id="t1", hand_id="h1")


@pytest.mark.parametrize(
    "rubbish", [b"", b"\x01", SEALED[:-1], SEALED + b"\x00", bytes(SEALED_BYTES_MAX + 1)]
)
def test_rubbish_does_not_open(rubbish: bytes) -> None:
    with pytest.raises(SealBroken):
        open_deck(KEYS, rubbish, table_id="t1", hand_id="h1")


def test_it_opens_after_a_newer_key_has_come_and_not_once_its_own_is_gone() -> None:
    old_key, newer_key = new_key(), new_key()
    sealed = seal_deck(SealKeys("room", {"a": old_key}), DECK, table_id="t", hand_id="h")
    both = SealKeys("room", {"b": newer_key, "a": old_key})
    assert open_deck(both, sealed, table_id="t", hand_id="h") == DECK
    with pytest.raises(SealBroken):
        open_deck(SealKeys("room", {"b": newer_key}), sealed, table_id="t", hand_id="h")


def test_the_cards_cannot_be_seen_in_it_and_two_seals_differ() -> None:
    assert bytes(DECK.cards[:8]) not in SEALED
    assert DECK.salt_seed not in SEALED
    assert seal_deck(KEYS, DECK, table_id="t1", hand_id="h1") != SEALED


def test_it_is_small_enough_for_a_state_blob() -> None:
    assert len(SEALED) <= 180


def test_a_full_deck_is_not_told_from_another_by_its_length() -> None:
    other = Deck(tuple(reversed(DECK.cards)), DECK.salt_seed, DECK.reshuffle_seed)
    assert len(seal_deck(KEYS, other, table_id="t1", hand_id="h1")) == len(SEALED)
