"""Visible hands: who brings in, and whose board opens (RULES.md, 3).

Boards compare groups and high cards only. A board is packed into an int, three bits of count for
each rank, so that it is kept up to date card by card and its key looked up.
"""

from collections.abc import Sequence
from typing import Final

NOBODY: Final = -1

RANK_UNIT: Final = tuple(8**rank for rank in range(13))
"""What a card of each rank adds to a packed board."""
CARD_UNIT: Final = tuple(RANK_UNIT[card >> 2] for card in range(52))
"""What each card adds."""

_PAIRS: Final = frozenset(2 * unit for unit in RANK_UNIT)

# By the sizes of the groups: unpaired, pair, two pair, trips, trips with a pair, quads.
_PATTERN: Final = {(): 0, (2,): 1, (2, 2): 2, (3,): 3, (3, 2): 4, (4,): 5}

# At most 8,567 boards of one to five cards exist, so these stay small.
_high_keys: Final[dict[int, int]] = {}
_razz_keys: Final[dict[int, int]] = {}


class Boards:
    """The up cards of a hand, by place clockwise from the left of the button."""

    __slots__ = ("by_suit", "hands", "packed", "razz", "shared")

    def __init__(self, hands: list[list[int]], razz: bool, by_suit: bool) -> None:
        self.razz: bool = razz
        """The lowest board opens, and the highest door card brings in."""
        self.by_suit: bool = by_suit
        """Equal boards are told apart by suit, else by position."""
        self.hands: list[list[int]] = hands
        """The cards of each place in the order dealt: two down, up to four up, one down."""
        self.packed: list[int] = [0] * len(hands)
        """The up cards of each place: the sum of their units."""
        self.shared: list[int] = []
        """A community card, where it counts in the boards."""

    def up(self, i: int) -> list[int]:
        """The up cards of a place, in the order dealt."""
        return self.hands[i][2:6]

    def bring_in(self, standing: Sequence[bool]) -> int:
        """The place whose door card brings in: the lowest, ace high, then suit; in razz the
        highest, king of spades down to ace of clubs."""
        best, best_card = NOBODY, 0
        for i, cards in enumerate(self.hands):
            if standing[i]:
                door = cards[2]
                card = -_low_order(door) if self.razz else door
                if best < 0 or card < best_card:
                    best, best_card = i, card
        return best

    def best(self, standing: Sequence[bool]) -> int:
        """The place of the best visible hand among those who have not folded."""
        keys, key_of = (_razz_keys, razz_key) if self.razz else (_high_keys, high_key)
        extra = sum([CARD_UNIT[card] for card in self.shared]) if self.shared else 0
        best, best_key = NOBODY, 0
        for i, packed in enumerate(self.packed):
            if standing[i]:
                key = keys.get(packed + extra)
                if key is None:
                    key = key_of(packed + extra)
                if best < 0 or key > best_key:
                    best, best_key = i, key
                elif key == best_key and self.by_suit and self._suits(i) > self._suits(best):
                    best = i
        return best

    def any_pair(self, standing: Sequence[bool]) -> bool:
        """Whether somebody who has not folded shows a pair on fourth street."""
        return any(packed in _PAIRS and standing[i] for i, packed in enumerate(self.packed))

    def _suits(self, i: int) -> list[int]:
        """What tells equal boards apart by suit: that of the most significant card decides, the
        higher first, in razz too (TDA RP-10D); where both share that card, the next."""
        cards = self.up(i) + self.shared
        ranks = [_low_order(card) >> 2 if self.razz else card >> 2 for card in cards]
        groups = [ranks.count(rank) for rank in ranks]
        suits = [card & 3 for card in cards]
        return [suit for _, _, suit in sorted(zip(groups, ranks, suits, strict=True), reverse=True)]


def high_key(packed: int) -> int:
    """The better a packed board for high, the larger; of boards of one length."""
    key = _high_keys.get(packed)
    if key is None:
        key = _high_keys[packed] = _key([(count, rank) for rank, count in _counts(packed)])
    return key


def razz_key(packed: int) -> int:
    """The better a packed board for razz, the larger: patterns, grouped ranks, then the rest from
    the top card down, ace low, each lower first."""
    key = _razz_keys.get(packed)
    if key is None:
        low = [(count, (rank + 1) % 13) for rank, count in _counts(packed)]
        key = _razz_keys[packed] = -_key(low)
    return key


def _low_order(card: int) -> int:
    """Cards in order with the ace low, then by suit: ace of clubs 0, king of spades 51."""
    return (card + 4) % 52


def _counts(packed: int) -> list[tuple[int, int]]:
    return [(rank, packed >> 3 * rank & 7) for rank in range(13) if packed >> 3 * rank & 7]


def _key(groups: list[tuple[int, int]]) -> int:
    groups.sort(reverse=True)
    key = _PATTERN[tuple([count for count, _ in groups if count > 1])]
    for count, rank in groups:
        for _ in range(count):
            key = key * 16 + rank
    return key
