"""The reconciler believes a difference only when it sees it twice, and never corrects one."""

from datetime import UTC, datetime, timedelta

import pytest
from doorcard.wallet.v1.wallet_pb2 import GetTotalsResponse, Reservation, SittingEscrow

from services.runtime.errors import Unavailable
from services.runtime.ids import uuid7
from services.settlement.peers import Peers
from services.settlement.reconcile import READINGS_MAX, Reconciler
from tests.contract.settlement.fakes import TABLES, FakeRoom

SHARD = 1


@pytest.fixture
def reconciler(peers: Peers) -> Reconciler:
    return Reconciler(peers, confirm_s=0, reservation_age_s=120)


def seat(room: FakeRoom, table_id: str = TABLES[0], *, chips: int, escrow: int) -> None:
    room.tables.money.setdefault(table_id, {})[f"s-{table_id}"] = chips
    room.wallet.escrow.append(
        SittingEscrow(table_id=table_id, sitting_id=f"s-{table_id}", amount=escrow)
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
    assert reconciler.shard(SHARD) == {TABLES[0]: {f"s-{TABLES[0]}": 1}}
    assert [table for table, _ in fake_room.tables.paused] == [TABLES[0]]
    # An operator who resumes it without settling what is wrong sees it paused again.
    reconciler.shard(SHARD)
    assert len({request_id for _, request_id in fake_room.tables.paused}) == 2


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
    fake_room.wallet.reservations["r"] = Reservation(
        reservation_id="r", table_id=TABLES[0], sitting_id="s", amount=40
    )
    fake_room.tables.write(SHARD, commit={"reservation_id": "r"})
    assert reconciler.shard(SHARD) == {}


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
    assert fake_room.tables.resolved == [ids[1], ids[3], ids[4]]


def test_the_sums_over_the_ledger_are_checked(fake_room: FakeRoom, reconciler: Reconciler) -> None:
    fake_room.wallet.totals = GetTotalsResponse(
        deposits=1000, withdrawals=100, players=500, escrow=300, house=100
    )
    assert reconciler.ledger("XTS") == 0
    fake_room.wallet.totals.house = 99
    assert reconciler.ledger("XTS") == 1
