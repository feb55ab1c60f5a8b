"""Money at the tables against escrow: what counts as a difference, and what does not."""

from collections.abc import Sequence

from doorcard.table.v1.internal_pb2 import InspectMoneyResponse, SittingMoney, TableMoney
from doorcard.wallet.v1.wallet_pb2 import (
    CashOut,
    HandSettlement,
    InspectEscrowResponse,
    LedgerEntry,
    ParkedEntry,
    Progress,
    Reservation,
    ReservationCommit,
    ReservationRelease,
    SittingEscrow,
    SittingNet,
)

from services.settlement import comparison
from services.settlement.comparison import Place

RESERVED = {"res-c": Reservation(reservation_id="res-c", sitting_id="c", amount=50)}


def money(last_seq: int, entries: list[LedgerEntry], **sittings: int) -> InspectMoneyResponse:
    table = TableMoney(
        table_id="t",
        currency="EUR",
        sittings=[SittingMoney(sitting_id=name, amount=each) for name, each in sittings.items()],
    )
    return InspectMoneyResponse(epoch=1, last_seq=last_seq, entries=entries, tables=[table])


def ledger(
    applied_seq: int, parked: Sequence[LedgerEntry] = (), /, **sittings: int
) -> InspectEscrowResponse:
    return InspectEscrowResponse(
        progress=Progress(epoch=1, applied_seq=applied_seq),
        escrow=[
            SittingEscrow(table_id="t", sitting_id=name, amount=each, currency="EUR")
            for name, each in sittings.items()
        ],
        parked=[ParkedEntry(table_id="t", content=each) for each in parked],
    )


ENTRIES = [
    LedgerEntry(
        seq=4, table_id="t", currency="EUR", commit=ReservationCommit(reservation_id="res-c")
    ),
    LedgerEntry(
        seq=5,
        table_id="t",
        currency="EUR",
        hand=HandSettlement(
            nets=[
                SittingNet(sitting_id="a", amount=17),
                SittingNet(sitting_id="b", amount=-20),
            ],
            rake=3,
        ),
    ),
    LedgerEntry(seq=6, table_id="t", currency="EUR", cash_out=CashOut(sitting_id="b", amount=80)),
    LedgerEntry(
        seq=7, table_id="t", currency="EUR", release=ReservationRelease(reservation_id="res-x")
    ),
]
"""a and b play from 100 each, c sits down with 50, b leaves with what he has."""


def test_what_waits_in_the_outbox_is_no_difference() -> None:
    tables = money(7, ENTRIES, a=117, c=50)
    for applied_seq, escrow in {
        3: {"a": 100, "b": 100},
        4: {"a": 100, "b": 100, "c": 50},
        5: {"a": 117, "b": 80, "c": 50},
        7: {"a": 117, "c": 50},
    }.items():
        book = ledger(applied_seq, **escrow)
        assert comparison.comparable(tables, book)
        assert comparison.differences(tables, book, RESERVED) == {}


def test_a_chip_too_many_or_too_few_is_found_sitting_by_sitting() -> None:
    found = comparison.differences(money(7, ENTRIES, a=118, c=49), ledger(7, a=117, c=50), {})
    assert found == {Place("t", "EUR", "a"): 1, Place("t", "EUR", "c"): -1}
    assert comparison.size(found) == 2
    assert comparison.by_table(found) == {("t", "EUR"): 2}


def test_escrow_without_a_seat_and_a_seat_without_escrow_are_found() -> None:
    a = Place("t", "EUR", "a")
    assert comparison.differences(money(0, []), ledger(0, a=5), {}) == {a: -5}
    assert comparison.differences(money(0, [], a=5), ledger(0), {}) == {a: 5}


def test_a_seat_whose_reservation_the_ledger_does_not_know_is_a_difference() -> None:
    found = comparison.differences(money(4, ENTRIES[:1], c=50), ledger(3), {})
    assert found == {Place("t", "EUR", "c"): 50}


def test_what_is_parked_counts_as_if_it_were_applied() -> None:
    for first in range(len(ENTRIES) + 1):
        # Parked from some entry on, all of it passed over by the ledger.
        escrow = [{"a": 100, "b": 100}, {"a": 100, "b": 100, "c": 50}, {"a": 117, "b": 80, "c": 50}]
        applied = [*escrow, {"a": 117, "c": 50}, {"a": 117, "c": 50}][first]
        book = ledger(7, ENTRIES[first:], **applied)
        assert comparison.differences(money(7, [], a=117, c=50), book, RESERVED) == {}
        assert comparison.differences(money(7, [], a=117, c=51), book, RESERVED) == {
            Place("t", "EUR", "c"): 1
        }


def test_only_what_belongs_together_is_compared() -> None:
    tables = money(7, ENTRIES, a=1)
    assert not comparison.comparable(tables, ledger(8))  # the ledger is past what was read
    assert not comparison.comparable(tables, ledger(2))  # entry 3 is missing between them
    other_epoch = ledger(7)
    other_epoch.progress.epoch = 2
    assert not comparison.comparable(tables, other_epoch)
