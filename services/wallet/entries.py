"""Entries of a shard's outbox, as the ledger sees them."""

from collections.abc import Callable
from datetime import datetime
from enum import IntEnum
from typing import NamedTuple

from services.wallet.money import AMOUNT_MAX

ENTRIES_MAX = 500
"""In one batch."""


class Kind(IntEnum):
    """What a transfer is for; the numbers are those of the contract."""

    DEPOSIT = 1
    WITHDRAWAL = 2
    BUY_IN = 3
    CASH_OUT = 4
    HAND = 5
    RAKE = 6
    ADJUSTMENT = 7
    REVERSAL = 8
    CLOSING = 9
    REOPENING = 10
    PAYBACK = 11
    RESOLUTION = 12


class State(IntEnum):
    """Of a reservation; the numbers are those of the contract."""

    PENDING = 1
    COMMITTED = 2
    RELEASED = 3


class Commit(NamedTuple):
    """A reservation becomes the table's."""

    reservation_id: str


class Release(NamedTuple):
    """A reservation goes back to its player."""

    reservation_id: str


class Hand(NamedTuple):
    """A finished hand: nets and rake add up to zero."""

    hand_id: str
    nets: tuple[tuple[str, int], ...]
    """(sitting id, signed minor units)."""
    rake: int
    """Minor units to the house."""
    dealt_in: tuple[tuple[str, int], ...] = ()
    """(sitting id, minor units that he put into the pots); none for a void hand."""
    game: int = 0
    """The contract's number."""
    stake: str = ""
    """Its name."""
    ended: datetime | None = None


class CashOut(NamedTuple):
    """A sitting ended: its whole escrow goes back to its player."""

    sitting_id: str
    player_id: str
    amount: int
    """Minor units, 0 when he lost everything."""
    kind: Kind = Kind.CASH_OUT
    """PAYBACK when the sitting lost its seat with its shard's epoch."""


class Note(NamedTuple):
    """Moves no money: the entry carries something that only the archive keeps."""


class Malformed(NamedTuple):
    """An entry that says nothing the ledger understands."""

    reason: str


class Entry(NamedTuple):
    """One entry with its place in the shard's chain."""

    seq: int
    entry_id: str
    previous_id: str
    """Empty for the first of an epoch."""
    table_id: str
    currency: str
    work: Commit | Release | Hand | CashOut | Note | Malformed
    content: Callable[[], bytes]
    """The entry as it came, kept whole when it is parked."""


class Parked(NamedTuple):
    """An entry that could not be applied."""

    seq: int
    entry_id: str
    table_id: str
    reason: str
    content: bytes = b""
    """As it came; only where escrow is inspected."""


class Progress(NamedTuple):
    """How far a shard is applied."""

    shard: int
    epoch: int
    """0 when the shard was never opened."""
    applied_seq: int
    applied_id: str


class Unpostable(Exception):  # noqa: N818 (what the entry is)
    """An entry that cannot be applied, with the reason it is parked for."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def check_hand(hand: Hand) -> None:
    """Raises Unpostable unless nets and rake are amounts that add up to zero."""
    if hand.rake < 0:
        raise Unpostable("RAKE_BELOW_ZERO")
    if max((abs(net) for _, net in hand.nets), default=0) > AMOUNT_MAX:
        raise Unpostable("BAD_AMOUNT")
    if sum(net for _, net in hand.nets) + hand.rake != 0:
        raise Unpostable("SUM_NOT_ZERO")
    if len({sitting for sitting, _ in hand.nets}) != len(hand.nets):
        raise Unpostable("SITTING_TWICE")
    if hand.dealt_in:
        _check_shares(hand)


def _check_shares(hand: Hand) -> None:
    put_in = dict(hand.dealt_in)
    if len(put_in) != len(hand.dealt_in):
        raise Unpostable("SITTING_TWICE")
    if not 0 <= min(put_in.values()) <= max(put_in.values()) <= AMOUNT_MAX:
        raise Unpostable("BAD_AMOUNT")
    # Nobody loses more than he put in, and nobody wins or loses who was not dealt in.
    if any(sitting not in put_in or net < -put_in[sitting] for sitting, net in hand.nets):
        raise Unpostable("SHARES_DIFFER")
    if hand.rake > sum(put_in.values()):
        raise Unpostable("SHARES_DIFFER")
