"""A batch of entries posted against accounts held in memory, pure.

The rows are loaded and locked beforehand, so what is decided here is final: an entry either posts
whole, or leaves no trace and is parked together with all later entries of its table.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from services.game.invariant import require
from services.wallet.entries import (
    CashOut,
    Commit,
    Entry,
    Hand,
    Kind,
    Malformed,
    Note,
    Parked,
    Release,
    State,
    Unpostable,
    check_hand,
)
from services.wallet.money import AMOUNT_MAX, CURRENCIES

BEHIND_PARKED = "BEHIND_PARKED"

_HAND, _RAKE, _BUY_IN = map(int, (Kind.HAND, Kind.RAKE, Kind.BUY_IN))


@dataclass(slots=True)
class Account:
    """A player's account or a sitting's escrow, as locked."""

    id: int
    owner: str
    """Player id or sitting id."""
    currency: str
    balance: int
    pending: int = 0
    closed: bool = False
    table_id: str = ""
    """Of escrow."""
    player: int = 0
    """Of escrow: the player's account."""

    @property
    def available(self) -> int:
        """What is not set aside."""
        return self.balance - self.pending


@dataclass(slots=True)
class Reservation:
    """A reservation, as locked; one that was released before it was made has no accounts."""

    id: str
    state: State
    table_id: str
    amount: int = 0
    player: int = 0
    escrow: int = 0


class HouseAccounts(NamedTuple):
    """The shard's shared accounts of one currency."""

    control: int
    """Where a hand's nets and rake meet; always back at zero."""
    house: int


JournalRow = tuple[int, int, str, str, str | None]
"""The head of an entry's transfers: its number, kind, source (entry id), table id, hand id."""

TransferRow = tuple[int, int, int, int, int, int, int | None, int | None]
"""Journal number, line, debit account, credit account, amount, kind; then the player's account
among the two, if any, and its balance after. Plain tuples: there are thousands in a batch.
"""


HandRow = tuple[int, str, int, str, datetime | None, int, str, str]
"""Journal number, currency, game, stake, when it ended, rake; then the players' accounts and what
each put in, as arrays in PostgreSQL's notation.
"""


@dataclass(slots=True)
class Posting:
    """Posts entries and collects the rows to write.

    accounts: by id, players and escrow. houses: by currency. parked_tables: those with parked
    entries; grows with those parked here. numbers: of journal rows, one for each entry is enough.
    """

    accounts: Mapping[int, Account]
    reservations: dict[str, Reservation]
    houses: Mapping[str, HouseAccounts]
    parked_tables: set[str]
    numbers: Iterator[int]
    journal: list[JournalRow] = field(default_factory=list)
    transfers: list[TransferRow] = field(default_factory=list)
    hands: list[HandRow] = field(default_factory=list)
    balances: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Account id -> change of its balance."""
    set_aside: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Account id -> change of what is pending."""
    closed: list[int] = field(default_factory=list)
    ended: list[tuple[str, State, str]] = field(default_factory=list)
    """(reservation id, new state, entry id)."""
    never_made: list[tuple[str, str, str]] = field(default_factory=list)
    """(reservation id, table id, entry id): released before the ledger ever saw them."""
    parked: list[tuple[Entry, str]] = field(default_factory=list)
    _sittings: dict[str, Account] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._sittings = {
            account.owner: account for account in self.accounts.values() if account.table_id
        }

    @property
    def rows(self) -> int:
        """How many are to be put in."""
        return len(self.journal) + len(self.transfers) + len(self.hands)

    def post_all(self, entries: Iterable[Entry]) -> None:
        """Post or park each, in order."""
        for entry in entries:
            try:
                self._post(entry)
            except Unpostable as fault:
                self.park(entry, fault.reason)
        require(sum(self.balances.values()) == 0, "a batch's transfers add up to zero")

    def park(self, entry: Entry, reason: str) -> None:
        """Set the entry aside for an operator; what follows at its table waits behind it."""
        self.parked_tables.add(entry.table_id)
        self.parked.append((entry, reason))

    def summary_of_parked(self) -> list[Parked]:
        """What was parked, without the contents."""
        return [
            Parked(entry.seq, entry.entry_id, entry.table_id, reason)
            for entry, reason in self.parked
        ]

    def _post(self, entry: Entry) -> None:
        work = entry.work
        if isinstance(work, Note):
            # Neither waits behind parked money nor needs a currency: it is not the ledger's.
            return
        if entry.table_id in self.parked_tables:
            raise Unpostable(BEHIND_PARKED)
        if entry.currency not in CURRENCIES:
            raise Unpostable("UNKNOWN_CURRENCY")
        if isinstance(work, Hand):
            self._post_hand(entry, work)
        elif isinstance(work, Commit):
            self._commit(entry, work)
        elif isinstance(work, CashOut):
            self._cash_out(entry, work)
        elif isinstance(work, Release):
            self._release(entry, work)
        elif isinstance(work, Malformed):
            raise Unpostable(work.reason)

    def _post_hand(self, entry: Entry, hand: Hand) -> None:
        check_hand(hand)
        moved = [(self._escrow(entry, sitting), net) for sitting, net in hand.nets if net]
        for escrow, net in moved:
            if not 0 <= escrow.balance + net <= AMOUNT_MAX:
                raise Unpostable("ESCROW_OVERDRAWN" if net < 0 else "BALANCE_LIMIT")
        players = [self._escrow(entry, sitting).player for sitting, _ in hand.dealt_in]
        control, house = self.houses[entry.currency]
        number = self._enter(_HAND, entry, hand.hand_id)
        if players or hand.rake:
            self.hands.append(
                (
                    number,
                    entry.currency,
                    hand.game,
                    hand.stake,
                    hand.ended,
                    hand.rake,
                    array(players),
                    array(put_in for _, put_in in hand.dealt_in),
                )
            )
        line = 0
        # The control account ends where it began, so its balance is not touched.
        for escrow, net in moved:
            escrow.balance += net
            self.balances[escrow.id] += net
            if net < 0:
                row = (number, line, escrow.id, control, -net, _HAND, None, None)
            else:
                row = (number, line, control, escrow.id, net, _HAND, None, None)
            self.transfers.append(row)
            line += 1
        if hand.rake:
            self.balances[house] += hand.rake
            self.transfers.append((number, line, control, house, hand.rake, _RAKE, None, None))

    def _commit(self, entry: Entry, commit: Commit) -> None:
        reservation = self._reservation(entry, commit.reservation_id)
        if reservation is None:
            raise Unpostable("RESERVATION_UNKNOWN")
        if reservation.state is State.COMMITTED:
            return
        if reservation.state is State.RELEASED:
            raise Unpostable("RESERVATION_RELEASED")
        player, amount = self.accounts[reservation.player], reservation.amount
        escrow = self._checked(entry, self.accounts[reservation.escrow])
        if escrow.balance + amount > AMOUNT_MAX:
            raise Unpostable("BALANCE_LIMIT")
        reservation.state = State.COMMITTED
        self.ended.append((reservation.id, State.COMMITTED, entry.entry_id))
        player.balance -= amount
        player.pending -= amount
        escrow.balance += amount
        self.set_aside[player.id] -= amount
        self._transfer(entry, player.id, escrow.id, amount, _BUY_IN, player)

    def _release(self, entry: Entry, release: Release) -> None:
        reservation = self._reservation(entry, release.reservation_id)
        if reservation is None:
            # Its Reserve may still be on the way: it must find the door shut.
            self.reservations[release.reservation_id] = Reservation(
                release.reservation_id, State.RELEASED, entry.table_id
            )
            self.never_made.append((release.reservation_id, entry.table_id, entry.entry_id))
        elif reservation.state is State.PENDING:
            player = self.accounts[reservation.player]
            if player.currency != entry.currency:
                raise Unpostable("CURRENCY_DIFFERS")
            reservation.state = State.RELEASED
            self.ended.append((reservation.id, State.RELEASED, entry.entry_id))
            player.pending -= reservation.amount
            self.set_aside[player.id] -= reservation.amount

    def _cash_out(self, entry: Entry, cash_out: CashOut) -> None:
        escrow = self._escrow(entry, cash_out.sitting_id)
        player, amount = self.accounts[escrow.player], cash_out.amount
        if player.owner != cash_out.player_id:
            raise Unpostable("PLAYER_DIFFERS")
        if amount != escrow.balance:
            raise Unpostable("AMOUNT_DIFFERS")
        if player.balance + amount > AMOUNT_MAX:
            raise Unpostable("BALANCE_LIMIT")
        escrow.balance = 0
        escrow.closed = True
        self.closed.append(escrow.id)
        if amount:
            player.balance += amount
            self._transfer(entry, escrow.id, player.id, amount, int(cash_out.kind), player)

    def _escrow(self, entry: Entry, sitting_id: str) -> Account:
        escrow = self._sittings.get(sitting_id)
        if escrow is None:
            raise Unpostable("SITTING_UNKNOWN")
        return self._checked(entry, escrow)

    def _checked(self, entry: Entry, escrow: Account) -> Account:
        if escrow.table_id != entry.table_id:
            raise Unpostable("TABLE_DIFFERS")
        if escrow.currency != entry.currency:
            raise Unpostable("CURRENCY_DIFFERS")
        if escrow.closed:
            raise Unpostable("SITTING_ENDED")
        return escrow

    def _reservation(self, entry: Entry, reservation_id: str) -> Reservation | None:
        reservation = self.reservations.get(reservation_id)
        if reservation is not None and reservation.table_id != entry.table_id:
            raise Unpostable("TABLE_DIFFERS")
        return reservation

    def _enter(self, kind: int, entry: Entry, hand_id: str | None = None) -> int:
        number = next(self.numbers)
        self.journal.append((number, kind, entry.entry_id, entry.table_id, hand_id))
        return number

    def _transfer(
        self, entry: Entry, debit: int, credit: int, amount: int, kind: int, player: Account
    ) -> None:
        """The one transfer of an entry that goes to or from a player."""
        number = self._enter(kind, entry)
        self.balances[debit] -= amount
        self.balances[credit] += amount
        self.transfers.append((number, 0, debit, credit, amount, kind, player.id, player.balance))


def array(values: Iterable[int]) -> str:
    """Numbers in PostgreSQL's notation: far cheaper to make than a list parameter."""
    return f"{{{','.join(map(str, values))}}}"
