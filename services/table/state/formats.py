"""What is stored of a club game: how it begins and ends, and how it stands (docs/rules.md, 8).

A cash table has neither.
"""

from enum import IntEnum
from typing import Final

import msgspec

WINNER_TAKES_ALL: Final = (100,)


class FormatKind(IntEnum):
    """Numbers of `doorcard.table.v1.FormatKind`."""

    CASH = 1
    FREEZE_OUT = 2
    """Until one player has all the chips."""
    TIMED = 3
    """Until an agreed time; then the most chips win."""


class Format(msgspec.Struct, frozen=True, array_like=True):
    """A club game as it was agreed on."""

    kind: FormatKind
    players: int
    """It begins when so many have a seat."""
    duration_s: int
    """Of a timed game, from its first hand; 0 for a freeze-out."""
    prizes: tuple[int, ...]
    """What each place gets of all chips, in percent, the winner's first; 100 together."""


class Ranked(msgspec.Struct, array_like=True):
    """A place of the final ranking."""

    rank: int
    player_id: str
    name: str
    stack: int
    """Minor units, when it was over."""
    prize: int
    """Minor units."""


class Game(msgspec.Struct, array_like=True):
    """A club game that has begun."""

    started_ms: int
    until_ms: int = 0
    """The agreed time; 0 for a freeze-out."""
    out: list[list[list[int]]] = []
    """For each hand that put players out, in the order played: their seats, the better place first,
    those who tie together.
    """
    deserted_until_ms: int = 0
    """Nobody who has chips is there to play; the game ends if that stays so. 0 while one is."""
    ranking: list[Ranked] = []
    """Everybody's place, the winner first, when it is over."""
