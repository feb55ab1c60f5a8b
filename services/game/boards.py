"""Visible hands: who brings in, and whose board opens (docs/rules.md, 3).

Boards compare groups and high cards only. A board is packed into an int, three bits of count for
each rank, so that it is kept up to date card by card and its key looked up.
"""
# ruff: noqa: B905 (saying that lengths agree, as they do here, triples what zip costs)

from collections.abc import Callable, Sequence
from typing import Final

RANK_UNIT: Final = tuple(8**rank for rank in range(13))
"""What a card of each rank adds to a packed board."""
CARD_UNIT: Final = tuple(RANK_UNIT[card >> 2] for card in range(52))
"""What each card adds."""

_PAIRS: Final = frozenset(2 * unit for unit in RANK_UNIT)

# Beyond every board and door card.
_NO_BOARD: Final = -(1 << 40)
_NO_DOOR: Final = 99

# By the sizes of the groups: unpaired, pair, two pair, trips, trips with a pair, quads.
_PATTERN: Final = {(): 0, (2,): 1, (2, 2): 2, (3,): 3, (3, 2): 4, (4,): 5}


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
        if self.razz:
            doors = [
                -_low_order(cards[2]) if stands else _NO_DOOR
                for cards, stands in zip(self.hands, standing)
            ]
        else:
            doors = [
                cards[2] if stands else _NO_DOOR for cards, stands in zip(self.hands, standing)
            ]
        return doors.index(min(doors))

    def best(self, standing: Sequence[bool]) -> int:
        """The place of the best visible hand among those who have not folded; of equal ones the
        nearest to the left of the button, or by suit."""
        key_of = _razz_keys if self.razz else _high_keys
        boards = self.packed
        if self.shared:
            extra = sum([CARD_UNIT[card] for card in self.shared])
            boards = [packed + extra for packed in boards]
        keys = [key_of[packed] if stands else _NO_BOARD for packed, stands in zip(boards, standing)]
        best_key = max(keys)
        if self.by_suit:
            equal = [i for i, key in enumerate(keys) if key == best_key]
            return max(equal, key=self._suits)
        return keys.index(best_key)

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
        return [suit for _, _, suit in sorted(zip(groups, ranks, suits), reverse=True)]


class _Keys(dict[int, int]):
    """Keys of packed boards, worked out when they are first asked for: there are 8,567 boards of
    one to five cards."""

    def __init__(self, key: Callable[[int], int]) -> None:
        super().__init__()
        self._key: Final = key

    def __missing__(self, packed: int) -> int:
        key = self[packed] = self._key(packed)
        return key


def high_key(packed: int) -> int:
    """The better a packed board for high, the larger; of boards of one length."""
    return _key([(count, rank) for rank, count in _counts(packed)])


def razz_key(packed: int) -> int:
    """The better a packed board for razz, the larger: patterns, grouped ranks, then the rest from
    the top card down, ace low, each lower first."""
    return -_key([(count, (rank + 1) % 13) for rank, count in _counts(packed)])


_high_keys: Final = _Keys(high_key)
_razz_keys: Final = _Keys(razz_key)


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
