"""Every card can be proven against the root, and nothing else can."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.game.cards import card_name
from services.shuffler import merkle
from services.shuffler.commitment import Commitment, Opened, Roots
from services.shuffler.deck import Deck, fresh_deck
from services.shuffler.generator import KernelGenerator
from services.shuffler.verify import verify_card, verify_dealt

DECK = fresh_deck(KernelGenerator())
COMMITMENT = Commitment(DECK)


def proves(opened: Opened, root: bytes, size: int = 52) -> bool:
    return verify_card(
        root=root,
        position=opened.position,
        card=opened.card,
        salt=opened.salt,
        path=opened.path,
        size=size,
    )


@pytest.mark.parametrize("size", range(1, 53))
def test_every_position_of_decks_of_every_size_is_proven(size: int) -> None:
    commitment = Commitment(Deck(DECK.cards[:size], DECK.salt_seed, DECK.reshuffle_seed))
    for position in range(size):
        opened = commitment.open(position)
        assert opened.card == card_name(DECK.cards[position])
        assert proves(opened, commitment.root, size)


def dealt(opened: Opened, root: bytes, leaves: bytes) -> bool:
    return verify_dealt(
        root=root,
        leaves=leaves,
        position=opened.position,
        card=opened.card,
        salt=opened.salt,
    )


@pytest.mark.parametrize("size", range(1, 53))
def test_the_leaves_prove_every_position_of_decks_of_every_size(size: int) -> None:
    commitment = Commitment(Deck(DECK.cards[:size], DECK.salt_seed, DECK.reshuffle_seed))
    assert len(commitment.leaves) == 32 * size
    for position in range(size):
        opened = commitment.open(position, with_path=False)
        assert not opened.path
        assert dealt(opened, commitment.root, commitment.leaves)


def test_a_deck_met_before_is_proven_as_at_first_also_after_its_root_went() -> None:
    roots = Roots(kept_max=2)
    decks = {bytes((n,)): fresh_deck(KernelGenerator()) for n in range(4)}
    for _ in range(2):
        for sealed, deck in decks.items():
            for _again in range(2):
                commitment = roots.commitment(sealed, deck)
                assert commitment.root == Commitment(deck).root
                assert proves(commitment.open(7), commitment.root)
                opened = commitment.open(51, with_path=False)
                assert dealt(opened, commitment.root, Commitment(deck).leaves)


def test_no_more_roots_are_kept_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    roots, hashed = Roots(kept_max=2), []
    leaf = merkle.leaf

    def counted(position: int, card: str, salt: bytes) -> bytes:
        hashed.append(position)
        return leaf(position, card, salt)

    monkeypatch.setattr(merkle, "leaf", counted)
    for sealed, leaves in ((b"1", 52), (b"2", 52), (b"1", 0), (b"3", 52), (b"1", 52), (b"3", 0)):
        hashed.clear()
        assert roots.commitment(sealed, DECK).root == COMMITMENT.root
        assert len(hashed) == leaves, sealed


@given(st.integers(0, 51), st.integers(0, 255))
def test_any_flipped_bit_of_leaves_salt_or_root_proves_nothing(position: int, bit: int) -> None:
    opened, root, leaves = COMMITMENT.open(position), COMMITMENT.root, COMMITMENT.leaves
    assert not dealt(opened, flipped(root, bit), leaves)
    for place in range(0, len(leaves), 32):
        changed = flipped(leaves[place : place + 32], bit)
        assert not dealt(opened, root, leaves[:place] + changed + leaves[place + 32 :])
    assert not dealt(Opened(position, opened.card, flipped(opened.salt, bit), ()), root, leaves)
    for card in (each for each in map(card_name, range(52)) if each != opened.card):
        assert not dealt(Opened(position, card, opened.salt, ()), root, leaves)


@pytest.mark.parametrize("cut", [0, 1, 31, 32, 51 * 32, 52 * 32 - 1])
def test_leaves_that_are_cut_short_prove_nothing(cut: int) -> None:
    opened = COMMITMENT.open(0)
    assert not dealt(opened, COMMITMENT.root, COMMITMENT.leaves[:cut])
    assert not dealt(opened, COMMITMENT.root, COMMITMENT.leaves * 5)
    for position in (-1, 52, 300):
        moved = Opened(position, opened.card, opened.salt, ())
        assert not dealt(moved, COMMITMENT.root, COMMITMENT.leaves)


def flipped(value: bytes, bit: int) -> bytes:
    return bytes(
        byte ^ (1 << bit % 8 if place == bit // 8 else 0) for place, byte in enumerate(value)
    )


@given(st.integers(0, 51), st.integers(0, 255))
def test_any_flipped_bit_proves_nothing(position: int, bit: int) -> None:
    opened = COMMITMENT.open(position)
    salt, path = opened.salt, list(opened.path)
    assert not proves(opened, flipped(COMMITMENT.root, bit))
    for card in (each for each in map(card_name, range(52)) if each != opened.card):
        assert not proves(Opened(position, card, salt, opened.path), COMMITMENT.root)
    assert not proves(
        Opened(position, opened.card, flipped(salt, bit), opened.path), COMMITMENT.root
    )
    for place, sibling in enumerate(path):
        changed = (*path[:place], flipped(sibling, bit), *path[place + 1 :])
        assert not proves(Opened(position, opened.card, salt, changed), COMMITMENT.root)


def test_a_card_is_proven_at_its_own_position_only() -> None:
    opened = COMMITMENT.open(17)
    for position in (each for each in range(52) if each != 17):
        moved = Opened(position, opened.card, opened.salt, opened.path)
        assert not proves(moved, COMMITMENT.root)


def test_a_path_of_another_length_proves_nothing() -> None:
    opened = COMMITMENT.open(0)
    for path in (opened.path[:-1], (*opened.path, bytes(32)), ()):
        assert not proves(Opened(0, opened.card, opened.salt, path), COMMITMENT.root)


@pytest.mark.parametrize(
    ("position", "card", "salt", "path"),
    [
        (-1, "As", bytes(32), (bytes(32),) * 6),
        (52, "As", bytes(32), (bytes(32),) * 6),
        (0, "Ace", bytes(32), (bytes(32),) * 6),
        (0, "Ä♠", bytes(32), (bytes(32),) * 6),
        (0, "As", bytes(31), (bytes(32),) * 6),
        (0, "As", bytes(32), (bytes(31),) * 6),
    ],
)
def test_malformed_proofs_are_false_and_raise_nothing(
    position: int, card: str, salt: bytes, path: tuple[bytes, ...]
) -> None:
    assert not verify_card(root=bytes(32), position=position, card=card, salt=salt, path=path)


def test_an_inner_node_cannot_pose_as_a_leaf() -> None:
    leaves = [merkle.leaf(place, "As", bytes(32)) for place in range(2)]
    assert merkle.root(leaves) != hashlib.sha256(b"\x00" + leaves[0] + leaves[1]).digest()
    assert merkle.root(leaves) == hashlib.sha256(b"\x01" + leaves[0] + leaves[1]).digest()


def test_the_tree_is_that_of_rfc_6962() -> None:
    # Seven leaves, as in section 2.1.3 of the RFC: hash = k(i(g(a b) h(c d)) l(j(e f) g)).
    leaves = [bytes((place,)) * 32 for place in range(7)]
    a, b, c, d, e, f, g = leaves
    left = merkle.node(merkle.node(a, b), merkle.node(c, d))
    right = merkle.node(merkle.node(e, f), g)
    assert merkle.root(leaves) == merkle.node(left, right)
    assert merkle.path(leaves, 0) == (b, merkle.node(c, d), right)
    assert merkle.path(leaves, 6) == (merkle.node(e, f), left)


def test_salts_differ_at_every_position() -> None:
    assert len({DECK.salt(position) for position in range(52)}) == 52


def test_an_opened_card_does_not_show_itself_in_a_representation() -> None:
    assert repr(COMMITMENT.open(3)) == "Opened(3)"
