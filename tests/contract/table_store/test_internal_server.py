"""What settlement and operators ask of tables, over gRPC."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from doorcard.table.v1 import internal_pb2 as pb
from doorcard.table.v1 import internal_pb2_grpc
from grpc import aio

from services.runtime.channels import connect
from services.runtime.errors import DoorcardError
from services.runtime.server import serving
from services.table.draft.audit import Instruction
from services.table.shards.internal_server import TableInternalServer
from services.table.shards.outbox import Outbox
from services.table.state.state import TableMoney
from services.table.store.store import Store
from services.table.store.stored import ShardState, Stored
from tests import valkey
from tests.conftest import Room
from tests.contract.table_store.stores import TABLE, OpenStore, change, committed

if TYPE_CHECKING:
    from doorcard.table.v1.internal_pb2_grpc import TableInternalServiceAsyncStub as Stub


class Tables:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    async def resolve_reservation(
        self, table_id: str, reservation_id: str, sitting_id: str
    ) -> bool:
        self.asked.append((table_id, reservation_id, sitting_id))
        return True

    async def pause(self, table_id: str, by: Instruction) -> int:
        self.asked.append((table_id, by.operator, by.request_id, by.reason))
        return 7


def money_of(blob: bytes) -> TableMoney:
    """The blob is a number: the stack of its only player, who has one more chip held."""
    if not int(blob):
        return TableMoney("XTS", [], [])
    return TableMoney("XTS", [("sitting", "anna", int(blob))], [("reservation", "sitting", 1)])


@asynccontextmanager
async def stub_on(room: Room, store: Store, tables: Tables) -> AsyncIterator["Stub"]:
    async def register(server: aio.Server) -> list[str]:
        servicer = TableInternalServer(
            store, Outbox(store, undrained_max_ms=60_000), tables, tables, money_of
        )
        internal_pb2_grpc.add_TableInternalServiceServicer_to_server(servicer, server)
        return ["doorcard.table.v1.TableInternalService"]

    settings = room.settings(
        service="table", token_file=room.token_file("settlement", roles=("service",))
    )
    async with (
        serving(settings, register) as running,
        connect(running.address, settings) as channel,
    ):
        yield internal_pb2_grpc.TableInternalServiceStub(channel)


def entry(amount: int, table_id: str = TABLE) -> bytes:
    made = pb.OutboxEntry()
    made.ledger.table_id = table_id
    made.ledger.currency = "XTS"
    made.ledger.cash_out.amount = amount
    return made.SerializeToString()


async def filled(store: Store, entries: int) -> tuple[int, Stored]:
    """A table with a stack of 5 and `entries` outbox entries e1, e2, ...; its shard."""
    present = await committed(store, change(None, b"5", lobby=b"line"))
    for number in range(1, entries + 1):
        present = await committed(store, change(present, b"5", (f"e{number}", entry(number))))
    return store.shard_of(TABLE), present


async def refused(call: Awaitable[object]) -> DoorcardError:
    with pytest.raises(aio.AioRpcError) as raised:
        await call
    return DoorcardError.from_rpc(raised.value)


async def test_entries_are_read_in_order_with_ids_and_links(
    room: Room, open_store: OpenStore
) -> None:
    async with open_store() as store, stub_on(room, store, Tables()) as stub:
        shard, _ = await filled(store, 5)
        read = await stub.ReadOutbox(pb.ReadOutboxRequest(shard=shard, limit=3, epoch=1))
        assert (read.epoch, read.state, read.last_seq) == (1, pb.SHARD_STATE_OPEN, 5)
        assert [
            (each.ledger.seq, each.ledger.entry_id, each.ledger.previous_entry_id)
            for each in read.entries
        ] == [(1, "e1", ""), (2, "e2", "e1"), (3, "e3", "e2")]
        assert [each.ledger.cash_out.amount for each in read.entries] == [1, 2, 3]
        rest = await stub.ReadOutbox(
            pb.ReadOutboxRequest(shard=shard, limit=500, epoch=1, after_seq=3, applied_id="e3")
        )
        assert [each.ledger.seq for each in rest.entries] == [4, 5]


async def test_an_unused_shard_has_epoch_zero(room: Room, open_store: OpenStore) -> None:
    async with open_store() as store, stub_on(room, store, Tables()) as stub:
        read = await stub.ReadOutbox(pb.ReadOutboxRequest(shard=2, limit=10))
        assert (read.epoch, read.state, len(read.entries)) == (0, pb.SHARD_STATE_UNSPECIFIED, 0)
        trimmed = await stub.TrimOutbox(pb.TrimOutboxRequest(shard=2))
        assert trimmed.length == 0
        assert (await stub.InspectMoney(pb.InspectMoneyRequest(shard=2))).epoch == 0
        assert await store.shard_state(2) is ShardState.UNOPENED


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ({"epoch": 1, "after_seq": 3, "applied_id": "another"}, "APPLIED_ENTRY_MISSING"),
        ({"epoch": 1, "after_seq": 9, "applied_id": "e9"}, "OUTBOX_BEHIND_LEDGER"),
        ({"epoch": 2, "after_seq": 3, "applied_id": "e3"}, "EPOCH_DIFFERS"),
    ],
)
async def test_a_shard_that_is_not_what_the_ledger_knows_is_closed(
    room: Room, open_store: OpenStore, known: dict[str, object], reason: str
) -> None:
    async with open_store() as store, stub_on(room, store, Tables()) as stub:
        shard, _ = await filled(store, 5)
        request = pb.ReadOutboxRequest(shard=shard, limit=10, **known)  # type: ignore[arg-type]
        read = await stub.ReadOutbox(request)
        assert (read.state, len(read.entries)) == (pb.SHARD_STATE_CLOSED, 0)
        assert (await store.shard(shard)).reason == reason


async def test_a_shard_that_redis_lost_is_closed_by_reading(
    room: Room, open_store: OpenStore, server: valkey.Valkey
) -> None:
    async with open_store() as store, stub_on(room, store, Tables()) as stub:
        shard, _ = await filled(store, 2)
        server.flush()
        request = pb.ReadOutboxRequest(shard=shard, limit=10, epoch=1, after_seq=2, applied_id="e2")
        assert (await stub.ReadOutbox(request)).state == pb.SHARD_STATE_CLOSED
        assert (await store.shard(shard)).reason == "REDIS_LOST"
        assert (await stub.ReadOutbox(request)).state == pb.SHARD_STATE_CLOSED
        trim = pb.TrimOutboxRequest(shard=shard, epoch=1, applied_seq=2, archived_seq=2)
        assert (await refused(stub.TrimOutbox(trim))).reason == "SHARD_DIFFERS"


async def test_the_archive_may_read_from_before_what_is_applied(
    room: Room, open_store: OpenStore
) -> None:
    async with open_store() as store, stub_on(room, store, Tables()) as stub:
        shard, _ = await filled(store, 5)
        request = pb.ReadOutboxRequest(shard=shard, limit=2, epoch=1, after_seq=1, applied_id="e4")
        read = await stub.ReadOutbox(request)
        assert (read.state, [each.ledger.seq for each in read.entries]) == (
            pb.SHARD_STATE_OPEN,
            [2, 3],
        )


async def test_who_reads_from_a_trimmed_position_is_late_and_closes_nothing(
    room: Room, open_store: OpenStore
) -> None:
    async with open_store() as store, stub_on(room, store, Tables()) as stub:
        shard, _ = await filled(store, 5)
        await stub.TrimOutbox(
            pb.TrimOutboxRequest(shard=shard, epoch=1, applied_seq=4, archived_seq=4)
        )
        request = pb.ReadOutboxRequest(shard=shard, limit=9, epoch=1, after_seq=2, applied_id="e2")
        read = await stub.ReadOutbox(request)
        assert read.state == pb.SHARD_STATE_OPEN
        assert [each.ledger.seq for each in read.entries] == [4, 5]


async def test_trimming_leaves_the_last_entry_at_the_lower_of_the_two(
    room: Room, open_store: OpenStore
) -> None:
    async with open_store() as store, stub_on(room, store, Tables()) as stub:
        shard, present = await filled(store, 5)

        async def trim(applied: int, archived: int) -> int:
            request = pb.TrimOutboxRequest(
                shard=shard, epoch=1, applied_seq=applied, archived_seq=archived
            )
            return (await stub.TrimOutbox(request)).length

        assert await trim(4, 2) == 4
        assert (await store.shard(shard)).applied_seq == 4
        assert await trim(3, 3) == 3
        assert (await store.shard(shard)).applied_seq == 4
        assert await trim(5, 5) == 1
        read = await stub.ReadOutbox(
            pb.ReadOutboxRequest(shard=shard, limit=9, epoch=1, after_seq=5, applied_id="e5")
        )
        assert (read.state, len(read.entries)) == (pb.SHARD_STATE_OPEN, 0)
        await committed(store, change(present, b"5", ("e6", entry(6))))
        after = await stub.ReadOutbox(
            pb.ReadOutboxRequest(shard=shard, limit=9, epoch=1, after_seq=5, applied_id="e5")
        )
        assert [each.ledger.previous_entry_id for each in after.entries] == ["e5"]


async def test_trimming_above_what_was_written_closes_the_shard(
    room: Room, open_store: OpenStore
) -> None:
    async with open_store() as store, stub_on(room, store, Tables()) as stub:
        shard, _ = await filled(store, 2)
        request = pb.TrimOutboxRequest(shard=shard, epoch=1, applied_seq=3, archived_seq=3)
        assert (await refused(stub.TrimOutbox(request))).reason == "SHARD_DIFFERS"
        assert await store.shard_state(shard) is ShardState.CLOSED


async def test_no_new_hand_while_the_ledger_is_behind_or_the_outbox_is_full(
    open_store: OpenStore,
) -> None:
    async with open_store() as store:
        shard, _ = await filled(store, 2)
        assert await Outbox(store, undrained_max_ms=60_000).may_deal(shard)
        assert not await Outbox(store, undrained_max_ms=60_000, bytes_max=10).may_deal(shard)
        while await store.undrained_age_ms(shard) < 2:
            pass
        assert not await Outbox(store, undrained_max_ms=1).may_deal(shard)
        await store.trim_outbox(shard, epoch=1, applied_seq=2, archived_seq=0)
        assert await store.undrained_age_ms(shard) == 0
        backlog = await store.backlog(shard)
        assert backlog.entries_held == 2
        await store.trim_outbox(shard, epoch=1, applied_seq=2, archived_seq=2)
        trimmed = await store.backlog(shard)
        assert trimmed.entries_held == 1
        assert 0 < trimmed.bytes_held < backlog.bytes_held


async def test_money_is_that_of_every_table_and_of_entries_after_the_applied_one(
    room: Room, open_store: OpenStore
) -> None:
    async with open_store(shards=1) as store, stub_on(room, store, Tables()) as stub:
        _, present = await filled(store, 3)
        await committed(store, change(None, b"0", table_id="empty", lobby=b"line"))
        await store.trim_outbox(0, epoch=1, applied_seq=1, archived_seq=0)
        money = await stub.InspectMoney(pb.InspectMoneyRequest(shard=0))
        assert (money.epoch, money.last_seq) == (1, 3)
        assert [each.table_id for each in money.tables] == [TABLE]
        assert money.tables[0].version == present.version
        assert money.tables[0].sittings[0] == pb.SittingMoney(
            sitting_id="sitting", player_id="anna", amount=5
        )
        assert list(money.tables[0].held) == [
            pb.HeldTopUp(reservation_id="reservation", sitting_id="sitting", amount=1)
        ]
        assert [(each.seq, each.entry_id) for each in money.entries] == [(2, "e2"), (3, "e3")]


async def test_reservations_and_pauses_reach_the_table(room: Room, open_store: OpenStore) -> None:
    tables = Tables()
    async with open_store() as store, stub_on(room, store, tables) as stub:
        resolved = await stub.ResolveReservation(
            pb.ResolveReservationRequest(table_id=TABLE, reservation_id=TABLE, sitting_id=TABLE)
        )
        paused = await stub.PauseTable(
            pb.PauseTableRequest(table_id=TABLE.upper(), request_id="r1", reason="why")
        )
        assert (resolved.seated, paused.version) == (True, 7)
        assert tables.asked == [
            (TABLE, TABLE, TABLE),
            (TABLE, "settlement", "r1", "why"),
        ]


async def test_rubbish_is_refused_with_the_field_named(room: Room, open_store: OpenStore) -> None:
    async with open_store() as store, stub_on(room, store, Tables()) as stub:
        for call, field in (
            (stub.ReadOutbox(pb.ReadOutboxRequest(shard=4, limit=1)), "shard"),
            (stub.ReadOutbox(pb.ReadOutboxRequest(shard=0, limit=0)), "limit"),
            (stub.ReadOutbox(pb.ReadOutboxRequest(shard=0, limit=1, after_seq=-1)), "after_seq"),
            (stub.TrimOutbox(pb.TrimOutboxRequest(shard=0, applied_seq=-1)), "applied_seq"),
            (stub.InspectMoney(pb.InspectMoneyRequest(shard=-1)), "shard"),
            (stub.PauseTable(pb.PauseTableRequest(table_id="x", request_id="r")), "table_id"),
            (stub.PauseTable(pb.PauseTableRequest(table_id=TABLE)), "request_id"),
        ):
            error = await refused(call)
            assert error.violations[0][0] == field
