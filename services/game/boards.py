"""Visible hands: who brings in, and whose board opens (RULES.md, 3).

Boards compare groups and high cards only. A board is packed into an int, three bits of count for
each rank, so that it can be kept up to date card by card and its key looked up.
"""

from typing import Final

RANK_UNIT: Final = tuple(8**rank for rank in range(13))
"""What a card of each rank adds to a packed board."""

# Unpaired, pair, two pair, trips, trips with a pair, quads, by the sizes of the groups: for high
# the better board has more cards in its largest group, then in its second.
_PATTERN: Final = {
    (): 0,
    (2,): 1,
    (2, 2): 2,
    (3,): 3,
    (3, 2): 4,
    (4,): 5,
}

# At most 8,567 boards of one to five cards exist, so these stay small.
_high_keys: Final[dict[int, int]] = {}
_razz_keys: Final[dict[int, int]] = {}


def bring_in_place(doors: list[int], razz: bool) -> int:
    """Which of the door cards brings in: the lowest, ace high, then suit; in razz the highest,
    king of spades down to ace of clubs."""
    if razz:
        keys = [((card >> 2) + 1) % 13 * 4 + (card & 3) for card in doors]
        return keys.index(max(keys))
    return doors.index(min(doors))


def high_key(board: int) -> int:
    """The better a packed board for high, the larger; of boards of one length."""
    key = _high_keys.get(board)
    if key is None:
        key = _high_keys[board] = _key([(count, rank) for rank, count in _counts(board)], 1)
    return key


def razz_key(board: int) -> int:
    """The better a packed board for razz, the larger: patterns, grouped ranks, then the rest from
    the top card down, ace low, each lower first."""
    key = _razz_keys.get(board)
    if key is None:
        low = [(count, (rank + 1) % 13) for rank, count in _counts(board)]
        key = _razz_keys[board] = _key(low, -1)
    return key


def suits_first(one: list[int], other: list[int], razz: bool) -> bool:
    """Whether of two equal boards the first opens by suit: the most significant card decides, the
    higher suit first, in razz too (TDA RP-10D); a card that both share, the next."""
    return _by_significance(one, razz) > _by_significance(other, razz)


def has_pair(board: int) -> bool:
    """Whether a packed board holds two cards of a rank."""
    return any(count > 1 for _, count in _counts(board))


def _counts(board: int) -> list[tuple[int, int]]:
    return [(rank, board >> 3 * rank & 7) for rank in range(13) if board >> 3 * rank & 7]


def _key(groups: list[tuple[int, int]], sign: int) -> int:
    groups.sort(reverse=True)
    key = _PATTERN[tuple([count for count, _ in groups if count > 1])]
    for count, rank in groups:
        for _ in range(count):
            key = key * 16 + rank
    return sign * key


def _by_significance(cards: list[int], razz: bool) -> list[int]:
    ranks = [((card >> 2) + 1) % 13 if razz else card >> 2 for card in cards]
    groups = [ranks.count(rank) for rank in ranks]
    suits = [card & 3 for card in cards]
    return [suit for _, _, suit in sorted(zip(groups, ranks, suits, strict=True), reverse=True)]
