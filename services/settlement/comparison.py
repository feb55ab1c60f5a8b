"""Compares the money at tables with the ledger, sitting by sitting.

stack + chips in the running hand + held top-ups = posted escrow + what parked entries and the
outbox beyond `applied_seq` would do to it + pending reservations of held top-ups.
Pure: what was read goes in, differences come out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from doorcard.table.v1.internal_pb2 import InspectMoneyResponse
from doorcard.wallet.v1.wallet_pb2 import InspectEscrowResponse, LedgerEntry, Reservation


class Place(NamedTuple):
    """Whose money it is: one sitting's, in one currency."""

    table_id: str
    currency: str
    """ISO 4217 code."""
    sitting_id: str


Differences = dict[Place, int]
"""Money at the table less money in the ledger, minor units, never 0."""


def comparable(money: InspectMoneyResponse, ledger: InspectEscrowResponse) -> bool:
    """Whether the two belong together: one epoch, and the ledger is not past what was read.

    The tables must have been read first; then every entry between the two is in the outbox.
    """
    progress = ledger.progress
    between = range(progress.applied_seq + 1, money.last_seq + 1)
    return (
        progress.epoch == money.epoch
        and progress.applied_seq <= money.last_seq
        and [entry.seq for entry in _waiting(money, ledger)] == list(between)
    )


def unapplied(money: InspectMoneyResponse, ledger: InspectEscrowResponse) -> list[LedgerEntry]:
    """Entries that were committed at the tables and are not applied in the ledger's snapshot:
    those that are parked, and those that wait in the outbox.
    """
    return [each.content for each in ledger.parked] + _waiting(money, ledger)


def differences(
    money: InspectMoneyResponse,
    ledger: InspectEscrowResponse,
    reservations: Mapping[str, Reservation],
) -> Differences:
    """Where they differ.

    reservations: those that the unapplied entries commit, by id; one that is missing counts as
    nothing.
    """
    found: Counter[Place] = Counter()
    for table in money.tables:
        for sitting in table.sittings:
            found[Place(table.table_id, table.currency, sitting.sitting_id)] += sitting.amount
        for top_up in table.held:
            found[Place(table.table_id, table.currency, top_up.sitting_id)] += top_up.amount
    for escrow in ledger.escrow:
        found[Place(escrow.table_id, escrow.currency, escrow.sitting_id)] -= escrow.amount
    entries = unapplied(money, ledger)
    for entry in entries:
        for sitting_id, amount in _effects(entry, reservations):
            found[Place(entry.table_id.lower(), entry.currency, sitting_id)] -= amount
    held = {each.reservation_id for table in money.tables for each in table.held}
    held -= {entry.commit.reservation_id for entry in entries}
    for each in ledger.pending:
        if each.reservation_id in held:
            found[Place(each.table_id, each.currency, each.sitting_id)] -= each.amount
    return {place: amount for place, amount in found.items() if amount}


def by_table(found: Differences) -> dict[tuple[str, str], int]:
    """(table id, currency) -> sum of its differences without their signs."""
    sums: defaultdict[tuple[str, str], int] = defaultdict(int)
    for place, amount in found.items():
        sums[place.table_id, place.currency] += abs(amount)
    return dict(sums)


def size(found: Differences) -> int:
    """Sum of the differences without their signs."""
    return sum(map(abs, found.values()))


def _waiting(money: InspectMoneyResponse, ledger: InspectEscrowResponse) -> list[LedgerEntry]:
    return [entry for entry in money.entries if entry.seq > ledger.progress.applied_seq]


def _effects(
    entry: LedgerEntry, reservations: Mapping[str, Reservation]
) -> Iterator[tuple[str, int]]:
    """What an entry will do to posted escrow: (sitting id, signed amount)."""
    match entry.WhichOneof("entry"):
        case "commit":
            reservation = reservations.get(entry.commit.reservation_id)
            if reservation is not None:
                yield reservation.sitting_id, reservation.amount
        case "hand":
            for net in entry.hand.nets:
                yield net.sitting_id, net.amount
        case "cash_out":
            yield entry.cash_out.sitting_id, -entry.cash_out.amount


def committed(entries: Iterable[LedgerEntry]) -> set[str]:
    """Reservations that the entries commit."""
    return {each.commit.reservation_id for each in entries if each.WhichOneof("entry") == "commit"}
