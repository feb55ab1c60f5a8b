"""Compares the money at tables with their escrow in the ledger, sitting by sitting.

stack + chips in the running hand = posted escrow + what the outbox holds beyond `applied_seq`.
Pure: what was read goes in, differences come out.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from doorcard.table.v1.internal_pb2 import InspectMoneyResponse
from doorcard.wallet.v1.wallet_pb2 import InspectEscrowResponse, LedgerEntry, Reservation

Differences = dict[str, dict[str, int]]
"""table id -> sitting id -> money at the table less money in the ledger, minor units, never 0."""


def waiting(money: InspectMoneyResponse, ledger: InspectEscrowResponse) -> list[LedgerEntry]:
    """Entries that were committed at the tables and not yet applied in the ledger's snapshot."""
    return [entry for entry in money.entries if entry.seq > ledger.progress.applied_seq]


def comparable(money: InspectMoneyResponse, ledger: InspectEscrowResponse) -> bool:
    """Whether the two belong together: one epoch, and the ledger is not past what was read.

    The tables must have been read first; then every entry between the two is in the outbox.
    """
    progress = ledger.progress
    between = range(progress.applied_seq + 1, money.last_seq + 1)
    return (
        progress.epoch == money.epoch
        and progress.applied_seq <= money.last_seq
        and [entry.seq for entry in waiting(money, ledger)] == list(between)
    )


def differences(
    money: InspectMoneyResponse,
    ledger: InspectEscrowResponse,
    reservations: Mapping[str, Reservation],
) -> Differences:
    """By table and sitting, where they differ.

    reservations: those that the waiting entries commit, by id; one that is missing counts as
    nothing. Tables with parked entries are left out: what those would have done is not known, and
    they are paused anyway.
    """
    parked = {each.table_id for each in ledger.parked}
    found: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for table in money.tables:
        for sitting in table.sittings:
            found[table.table_id][sitting.sitting_id] += sitting.amount
    for escrow in ledger.escrow:
        found[escrow.table_id][escrow.sitting_id] -= escrow.amount
    for entry in waiting(money, ledger):
        for sitting_id, amount in _effects(entry, reservations):
            found[entry.table_id][sitting_id] -= amount
    return {
        table_id: nonzero
        for table_id, sittings in found.items()
        if table_id not in parked
        and (nonzero := {each: amount for each, amount in sittings.items() if amount})
    }


def size(found: Differences) -> int:
    """Sum of the absolute differences."""
    return sum(abs(amount) for sittings in found.values() for amount in sittings.values())


def _effects(
    entry: LedgerEntry, reservations: Mapping[str, Reservation]
) -> Iterable[tuple[str, int]]:
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
