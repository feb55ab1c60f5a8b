"""Cards as integers 0..51: `rank * 4 + suit`.

Rank 0 is the two and 12 the ace; suits run clubs, diamonds, hearts, spades, so that of two cards
of a rank the smaller integer is the lower card wherever suits matter (docs/rules.md, 2).
"""

from typing import Final

RANKS: Final = "23456789TJQKA"
SUITS: Final = "cdhs"
CARDS: Final = 52
"""Cards in the deck; no joker (docs/rules.md, 2)."""
ACE: Final = 12
"""Rank of the ace."""

_NAMES: Final = tuple(rank + suit for rank in RANKS for suit in SUITS)
_CARDS: Final = {name: card for card, name in enumerate(_NAMES)}


def parse_card(text: str) -> int:
    """The card of two letters such as "As" or "Td"; raises ValueError for anything else."""
    card = _CARDS.get(text)
    if card is None:
        raise ValueError(f"not a card: {text!r}")
    return card


def parse_cards(text: str) -> tuple[int, ...]:
    """The cards of a run of letters such as "AsTd", in order; raises ValueError."""
    if len(text) % 2:
        raise ValueError(f"not a row of cards: {text!r}")
    return tuple(parse_card(text[i : i + 2]) for i in range(0, len(text), 2))


def card_name(card: int) -> str:
    """Two letters for a card 0..51: "As"."""
    return _NAMES[card]


def card_names(cards: tuple[int, ...] | list[int]) -> str:
    """The letters of several cards, without spaces: "AsTd"."""
    return "".join([_NAMES[card] for card in cards])
