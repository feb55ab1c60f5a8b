"""The reconciler believes a difference only when it sees it twice, and never corrects one."""

from datetime import UTC, datetime, timedelta

import pytest
from doorcard.table.v1.internal_pb2 import HeldTopUp
from doorcard.wallet.v1.wallet_pb2 import (
    RESERVATION_STATE_PENDING,
    GetTotalsResponse,
    ParkedEntry,
    Reservation,
    SittingEscrow,
)
from structlog.testing import capture_logs

from services.runtime.errors import Unavailable
from services.runtime.ids import uuid7
from services.settlement import meters
from services.settlement.comparison import Place
from services.settlement.measuring import READINGS_MAX
from services.settlement.peers import ATTEMPTS, Peers
from services.settlement.reconcile import Reconciler
from tests.contract.settlement.fakes import TABLES, FakeRoom

SHARD = 1
BUY_IN = "0190a000-0000-7000-8000-0000000000f1"


@pytest.fixture
def reconciler(peers: Peers) -> Reconciler:
    return Reconciler(peers, confirm_s=0, reservation_age_s=120)


def seat(room: FakeRoom, table_id: str = TABLES[0], *, chips: int, escrow: int) -> None:
    room.tables.money.setdefault(table_id, {})[f"s-{table_id}"] = chips
    room.wallet.escrow.append(
        SittingEscrow(table_id=table_id, sitting_id=f"s-{table_id}", amount=escrow, currency="XTS")
    )


def reserve(room: FakeRoom, reservation_id: str, amount: int, sitting_id: str = "s") -> None:
    room.wallet.reservations[reservation_id] = Reservation(
        reservation_id=reservation_id,
        table_id=TABLES[0],
        sitting_id=sitting_id,
        amount=amount,
        currency="XTS",
        state=RESERVATION_STATE_PENDING,
    )


def test_equal_money_pauses_nothing(fake_room: FakeRoom, reconciler: Reconciler) -> None:
    seat(fake_room, chips=100, escrow=100)
    assert reconciler.shard(SHARD) == {}
    assert not fake_room.tables.paused


def test_a_lasting_difference_pauses_that_table_and_no_other(
    fake_room: FakeRoom, reconciler: Reconciler
) -> None:
    seat(fake_room, TABLES[0], chips=101, escrow=100)
    seat(fake_room, TABLES[1], chips=50, escrow=50)
    assert reconciler.shard(SHARD) == {Place(TABLES[0], "XTS", f"s-{TABLES[0]}"): 1}
    assert [table for table, _ in fake_room.tables.paused] == [TABLES[0]]
    # An operator who resumes it without settling what is wrong sees it paused again.
    reconciler.shard(SHARD)
    assert len({request_id for _, request_id in fake_room.tables.paused}) == 2


def test_a_difference_is_counted_and_told_until_it_is_gone(
    fake_room: FakeRoom, reconciler: Reconciler
) -> None:
    difference = meters.DIFFERENCE.labels(str(SHARD))
    seat(fake_room, TABLES[0], chips=103, escrow=100)
    seat(fake_room, TABLES[1], chips=49, escrow=50)
    with capture_logs() as logs:
        reconciler.shard(SHARD)
    assert difference._value.get() == 4
    told = [each for each in logs if each["event"] == "reconciliation_difference"]
    assert [(each["table"], each["sitting"], each["amount"]) for each in told] == [
        (TABLES[0], f"s-{TABLES[0]}", 3),
        (TABLES[1], f"s-{TABLES[1]}", -1),
    ]
    fake_room.wallet.escrow[0].amount = 103
    fake_room.wallet.escrow[1].amount = 49
    with capture_logs() as logs:
        assert reconciler.shard(SHARD) == {}
    assert difference._value.get() == 0
    assert not logs


def test_a_parked_table_is_paused_even_while_its_shard_cannot_be_compared(
    fake_room: FakeRoom, reconciler: Reconciler
) -> None:
    entry = fake_room.tables.write(SHARD).ledger
    fake_room.wallet.parked[SHARD].append(ParkedEntry(table_id=TABLES[0], content=entry))
    fake_room.wallet.applied[SHARD] += [entry.entry_id, uuid7()]
    with pytest.raises(Unavailable, match="NOT_COMPARABLE"):
        reconciler.shard(SHARD)
    assert [table for table, _ in fake_room.tables.paused] == [TABLES[0]]
    assert meters.PARKED_NOW.labels(str(SHARD))._value.get() == 1


def test_a_difference_that_passes_or_changes_pauses_nothing(
    fake_room: FakeRoom, reconciler: Reconciler
) -> None:
    seat(fake_room, chips=101, escrow=100)

    def grow() -> None:
        fake_room.tables.money[TABLES[0]][f"s-{TABLES[0]}"] += 1

    fake_room.wallet.before_inspection = grow
    assert reconciler.shard(SHARD) == {}
    assert not fake_room.tables.paused


def test_a_buy_in_that_waits_in_the_outbox_is_no_difference(
    fake_room: FakeRoom, reconciler: Reconciler
) -> None:
    fake_room.tables.money[TABLES[0]] = {"s": 40}
    reserve(fake_room, BUY_IN, 40)
    fake_room.tables.write(SHARD, commit={"reservation_id": BUY_IN})
    assert reconciler.shard(SHARD) == {}


def test_a_seat_whose_commit_was_lost_is_a_difference(
    fake_room: FakeRoom, reconciler: Reconciler
) -> None:
    fake_room.tables.money[TABLES[0]] = {"s": 40}
    reserve(fake_room, BUY_IN, 40)
    assert reconciler.shard(SHARD) == {Place(TABLES[0], "XTS", "s"): 40}


def test_a_top_up_is_held_by_its_pending_reservation_until_its_commit_is_written(
    fake_room: FakeRoom, reconciler: Reconciler
) -> None:
    held = HeldTopUp(reservation_id=BUY_IN, sitting_id="s", amount=40)
    fake_room.tables.money[TABLES[0]] = {"s": 100}
    fake_room.tables.held[TABLES[0]] = [held]
    fake_room.wallet.escrow.append(
        SittingEscrow(table_id=TABLES[0], sitting_id="s", amount=100, currency="XTS")
    )
    assert reconciler.shard(SHARD) == {Place(TABLES[0], "XTS", "s"): 40}, "nothing pays for it"
    reserve(fake_room, BUY_IN, 40)
    assert reconciler.shard(SHARD) == {}
    fake_room.tables.write(SHARD, commit={"reservation_id": BUY_IN})
    assert reconciler.shard(SHARD) == {}, "held by the seat still, and committed: counted once"
    fake_room.tables.held.clear()
    fake_room.tables.money[TABLES[0]] = {"s": 140}
    assert reconciler.shard(SHARD) == {}


def test_a_parked_table_is_paused_and_compared_with_what_its_parked_entries_would_do(
    fake_room: FakeRoom, reconciler: Reconciler
) -> None:
    fake_room.tables.money[TABLES[0]] = {"s": 40}
    reserve(fake_room, BUY_IN, 40)
    for reservation_id in (BUY_IN, "rubbish", uuid7()):
        entry = fake_room.tables.write(SHARD, commit={"reservation_id": reservation_id}).ledger
        fake_room.wallet.applied[SHARD].append(entry.entry_id)
        fake_room.wallet.parked[SHARD].append(
            ParkedEntry(entry_id=entry.entry_id, table_id=TABLES[0], content=entry)
        )
    assert reconciler.shard(SHARD) == {}
    assert [table for table, _ in fake_room.tables.paused] == [TABLES[0]]
    fake_room.tables.money[TABLES[0]]["s"] = 41
    assert reconciler.shard(SHARD) == {Place(TABLES[0], "XTS", "s"): 1}


def test_chips_in_another_currency_than_their_escrow_differ_in_both(
    fake_room: FakeRoom, reconciler: Reconciler
) -> None:
    seat(fake_room, chips=100, escrow=100)
    fake_room.wallet.escrow[0].currency = "EUR"
    sitting = f"s-{TABLES[0]}"
    assert reconciler.shard(SHARD) == {
        Place(TABLES[0], "XTS", sitting): 100,
        Place(TABLES[0], "EUR", sitting): -100,
    }


def test_it_reads_again_when_the_ledger_has_gone_past_what_was_read(
    fake_room: FakeRoom, reconciler: Reconciler
) -> None:
    seat(fake_room, chips=100, escrow=100)
    left = [READINGS_MAX - 1]

    def play_on() -> None:
        if left[0]:
            left[0] -= 1
            fake_room.wallet.applied[SHARD].append(
                fake_room.tables.write(SHARD, release={"reservation_id": "r"}).ledger.entry_id
            )

    fake_room.wallet.before_inspection = play_on
    assert reconciler.shard(SHARD) == {}
    left[0] = 100
    with pytest.raises(Unavailable, match="NOT_COMPARABLE"):
        reconciler.shard(SHARD)
    assert not fake_room.tables.paused


def test_old_pending_reservations_are_put_to_their_tables_page_by_page(
    fake_room: FakeRoom, reconciler: Reconciler
) -> None:
    now = datetime.now(UTC)
    ids = [uuid7() for _ in range(5)]
    for number, reservation_id in enumerate(ids):
        reservation = Reservation(
            reservation_id=reservation_id,
            table_id=TABLES[0] if number != 2 else TABLES[1],
            sitting_id=reservation_id,
        )
        age = timedelta(seconds=10 if number == 0 else 300)
        reservation.created.FromDatetime(now - age)
        fake_room.wallet.reservations[reservation_id] = reservation
    fake_room.tables.seated.add(ids[1])
    fake_room.away.services.add(TABLES[1])  # one table that does not answer stops nobody else's
    assert reconciler.reservations() == 3
    assert sorted(fake_room.tables.resolved) == sorted([ids[1], ids[3], ids[4]])


def test_a_table_that_hangs_is_asked_once_in_a_round_and_others_are_resolved(
    fake_room: FakeRoom, reconciler: Reconciler
) -> None:
    for number in range(6):
        reservation = Reservation(
            reservation_id=uuid7(), table_id=TABLES[number == 5], sitting_id=uuid7()
        )
        reservation.created.FromDatetime(datetime.now(UTC) - timedelta(seconds=300 - number))
        fake_room.wallet.reservations[reservation.reservation_id] = reservation
    fake_room.away.services.add(TABLES[0])
    assert reconciler.reservations() == 1
    assert fake_room.tables.asked == [TABLES[0]] * ATTEMPTS + [TABLES[1]]


def test_the_sums_over_the_ledger_are_checked(fake_room: FakeRoom, reconciler: Reconciler) -> None:
    for currency in ("EUR", "XTS"):
        fake_room.wallet.totals[currency] = GetTotalsResponse(
            deposits=1000, withdrawals=100, players=500, escrow=300, house=100
        )
    assert reconciler.ledger() == {}
    # No list of currencies is configured anywhere: one that appears is summed with the others.
    fake_room.wallet.totals["JPY"] = GetTotalsResponse(players=7)
    fake_room.wallet.totals["EUR"].house = 99
    assert reconciler.ledger() == {"EUR": 1, "JPY": -7}
