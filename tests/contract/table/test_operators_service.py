"""TableAdminService on a real store: templates, schedules, tables, and what is put on record."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
from doorcard.history.v1 import history_pb2
from doorcard.table.v1 import admin_pb2 as pb
from doorcard.table.v1 import admin_pb2_grpc, internal_pb2, internal_pb2_grpc, table_pb2
from google.protobuf.timestamp_pb2 import Timestamp
from grpc import aio

from services.runtime.channels import connect
from services.runtime.errors import (
    Aborted,
    AlreadyExists,
    DoorcardError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
)
from services.runtime.settings import ServiceSettings
from services.table.draft.draft import Draft
from services.table.lobby.closed_tables import ClosedTables
from services.table.operators import schedules, templates
from services.table.operators.schedules import table_id as scheduled_table_id
from services.table.operators.templates import template_id
from services.table.tables.mailbox import TICKS
from tests import valkey
from tests.conftest import Room
from tests.contract.table.replicas import SHARDS, Cluster, cluster
from tests.unit.game.test_hostile_rulebooks import HOSTILE

PATIENCE_S = 20.0


class Admin:
    """An operator's calls to one replica."""

    def __init__(self, tables: Cluster, at: int = 0) -> None:
        self.tables = tables
        channel = connect(tables.running[at].address, ServiceSettings())
        tables.stack.push_async_callback(channel.close)
        self.stub = admin_pb2_grpc.TableAdminServiceStub(channel)
        self.internal = internal_pb2_grpc.TableInternalServiceStub(channel)
        self.players = tables.stub(at)

    async def __call__(self, method: str, roles: str = "operator", **fields: Any) -> Any:
        """Call a method with a fresh request id unless one is given. Raises DoorcardError."""
        inputs = pb.DESCRIPTOR.services_by_name["TableAdminService"].methods_by_name[method]
        request = getattr(pb, inputs.input_type.name)(**fields)
        if "request_id" in inputs.input_type.fields_by_name and "request_id" not in fields:
            request.request_id = str(uuid4())
        metadata = self.tables.room.metadata("olga", (roles,))
        try:
            return await getattr(self.stub, method)(request, metadata=metadata, timeout=10)
        except aio.AioRpcError as error:
            raise DoorcardError.from_rpc(error) from None

    async def records(self) -> list[history_pb2.AuditRecord]:
        """What the outboxes of all shards hold for the audit log."""
        metadata = self.tables.room.metadata("settlement", ("service",))
        found = []
        for shard in range(SHARDS):
            if not (await self.tables.replicas[0].store.shard(shard)).epoch:
                continue
            read = await self.internal.ReadOutbox(
                internal_pb2.ReadOutboxRequest(shard=shard, limit=500, epoch=1), metadata=metadata
            )
            for entry in read.entries:
                if entry.HasField("audit"):
                    assert entry.ledger.HasField("note")
                    found.append(entry.audit)
        return sorted(found, key=lambda each: (each.at.ToNanoseconds(), each.action))

    async def view(self, table_id: str) -> table_pb2.TableView:
        """The table as everybody sees it."""
        metadata = self.tables.room.metadata("olga", ("operator",))
        request = table_pb2.GetTableRequest(table_id=table_id)
        try:
            return (await self.players.GetTable(request, metadata=metadata)).table
        except aio.AioRpcError as error:
            raise DoorcardError.from_rpc(error) from None


def like(name: str = "Night table", **fields: Any) -> table_pb2.CreateTableRequest:
    """What a table is to be."""
    return table_pb2.CreateTableRequest(
        name=name, rulebook="club", stake_name="5/10", seats=6, currency="XTS", **fields
    )


def in_seconds(seconds: float) -> Timestamp:
    """A time from now."""
    return Timestamp(seconds=int(time.time() + seconds))


async def until(found: Callable[[], Awaitable[Any]]) -> Any:
    """Ask until the answer is something."""
    async with asyncio.timeout(PATIENCE_S):
        while not (answer := await found()):
            await asyncio.sleep(0.05)
        return answer


async def test_templates_are_kept_changed_listed_and_forgotten(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        await tables.add_replica()
        admin, other = Admin(tables), Admin(tables, 1)
        request_id = str(uuid4())
        put: dict[str, Any] = {"name": "night", "table": like(), "request_id": request_id}
        first = (await admin("PutTemplate", **put)).template
        assert (first.version, first.changed_by, first.table) == (1, "olga", like())
        assert (await other("PutTemplate", **put)).template == first
        with pytest.raises(Aborted) as moved:
            await other("PutTemplate", name="night", table=like("Other"))
        assert moved.value.metadata["version"] == "1"
        with pytest.raises(Aborted):
            await admin("PutTemplate", name="none", table=like(), replaces_version=1)
        assert set(await tables.replicas[0].store.shelves.read(templates.SHELF)) == {"night"}
        with pytest.raises(AlreadyExists):
            await admin("PutTemplate", **{**put, "table": like("Other")})
        second = await other(
            "PutTemplate", name="night", table=like("Other"), replaces_version=1, reason="renamed"
        )
        assert second.template.version == 2
        for name in ("a", "b", "z"):
            await admin("PutTemplate", name=name, table=like(name))
        page = await admin("ListTemplates", page_size=3)
        assert [each.name for each in page.templates] == ["a", "b", "night"]
        rest = await admin("ListTemplates", page_size=3, page_token=page.next_page_token)
        assert [each.name for each in rest.templates] == ["z"]
        assert not rest.next_page_token
        gone: dict[str, Any] = {"name": "a", "request_id": str(uuid4())}
        await admin("DeleteTemplate", **gone)
        await other("DeleteTemplate", **gone)
        with pytest.raises(NotFound):
            await admin("GetTemplate", name="a")
        assert (await admin("PutTemplate", name="a", table=like())).template.version == 2
        kept = [each for each in await admin.records() if each.subject == "night"]
        assert [(each.action, each.reason) for each in kept] == [
            ("put_template", ""),
            ("put_template", "renamed"),
        ]
        changed = {each.field: (each.before, each.after) for each in kept[1].changes}
        assert changed["name"] == ("Night table", "Other")
        assert len(await admin.records()) == 7


async def test_a_template_is_validated_as_a_creation_is(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        with pytest.raises(InvalidArgument) as refused:
            await admin("PutTemplate", name="night", table=like(name="", hand_pause_ms=-1))
        assert {field for field, _ in refused.value.violations} == {"name", "hand_pause_ms"}
        wrong: list[dict[str, Any]] = [
            {"name": "no name", "table": like()},
            {"name": "night", "table": like(request_id="r")},
        ]
        for fields in wrong:
            with pytest.raises(InvalidArgument):
                await admin("PutTemplate", **fields)
        assert not await admin.records()


async def test_a_hostile_rulebook_makes_no_template_and_no_record(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        for name, hostile in HOSTILE.items():
            table = table_pb2.CreateTableRequest(
                name="Table", rulebook_toml=hostile.text, stake_name="1/2", seats=6, currency="XTS"
            )
            with pytest.raises(InvalidArgument) as refused:
                await admin("PutTemplate", name="night", table=table)
            within = "" if hostile.field == "file" else f".{hostile.field}"
            fields = {field for field, _ in refused.value.violations}
            assert f"rulebook_toml{within}" in fields, name
        assert not (await admin("ListTemplates")).templates
        assert not await admin.records()


async def test_a_table_from_a_template_is_created_once(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        await admin("PutTemplate", name="night", table=like())
        asked: dict[str, Any] = {"template": "night", "name": "Table 7", "request_id": str(uuid4())}
        made = (await admin("CreateTableFromTemplate", **asked)).table
        assert (made.config.name, made.config.rulebook) == ("Table 7", "club")
        await admin("PutTemplate", name="night", table=like("Another"), replaces_version=1)
        again = (await admin("CreateTableFromTemplate", **asked)).table
        assert again.config == made.config
        with pytest.raises(AlreadyExists):
            await admin("CreateTableFromTemplate", **{**asked, "name": "Table 8"})
        records = [each for each in await admin.records() if each.table_id]
        assert [(each.action, each.table_id) for each in records] == [
            ("create_table_from_template", made.config.table_id)
        ]
        assert ("template", "night") in [(e.field, e.after) for e in records[0].changes]


async def test_scheduled_tables_open_and_close_once_by_whatever_replica(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        for _ in range(2):
            await tables.add_replica()
        admin, other = Admin(tables), Admin(tables, 1)
        await admin("PutTemplate", name="night", table=like())
        asked: dict[str, Any] = {
            "template": "night",
            "opens_at": in_seconds(1),
            "closes_at": in_seconds(4),
            "tables": 2,
            "request_id": str(uuid4()),
        }
        scheduled = (await admin("ScheduleTable", **asked)).scheduled
        assert (await other("ScheduleTable", **asked)).scheduled.schedule_id == (
            scheduled.schedule_id
        )
        with pytest.raises(FailedPrecondition) as used:
            await admin("DeleteTemplate", name="night")
        assert used.value.reason == "TEMPLATE_IN_USE"
        ids = [scheduled_table_id(scheduled.schedule_id, 0, number) for number in (0, 1)]

        async def state(table_id: str) -> int:
            try:
                return (await admin.view(table_id)).state
            except NotFound:
                return 0

        async def opened() -> bool:
            return [await state(each) for each in ids] == [table_pb2.TABLE_STATE_OPEN] * 2

        async def closed() -> bool:
            return [await state(each) for each in ids] == [table_pb2.TABLE_STATE_CLOSED] * 2

        await until(opened)
        await asyncio.gather(*(each.admin.scheduler.once() for each in tables.replicas))
        await until(closed)
        done = [each for each in await admin.records() if each.table_id in ids]
        assert sorted((each.action, each.table_id) for each in done) == sorted(
            (action, each)
            for action in ("open_scheduled_table", "close_scheduled_table")
            for each in ids
        )
        assert {each.operator for each in done} == {"olga"}
        assert not (await admin("ListScheduledTables")).scheduled
        await admin("DeleteTemplate", name="night")


async def test_a_schedule_goes_on_after_an_outage_and_can_be_cancelled(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        keys = tables.keys
        await tables.add_replica()
        admin = Admin(tables)
        await admin("PutTemplate", name="night", table=like())
        asked = await admin(
            "ScheduleTable", template="night", opens_at=in_seconds(3), repeat=pb.REPEAT_DAILY
        )
        schedule_id = asked.scheduled.schedule_id
    # Nobody is there when it is due.
    async with cluster(room, server) as tables:
        tables.keys = keys
        await asyncio.sleep(max(0.0, asked.scheduled.opens_at.seconds + 0.5 - time.time()))
        await tables.add_replica()
        admin = Admin(tables)

        async def opened() -> Any:
            try:
                return await admin.view(scheduled_table_id(schedule_id, 0, 0))
            except NotFound:
                return None

        assert (await until(opened)).state == table_pb2.TABLE_STATE_OPEN

        async def next_day() -> Any:
            (listed,) = (await admin("ListScheduledTables")).scheduled
            return listed.opens_at.seconds > asked.scheduled.opens_at.seconds + 80_000

        await until(next_day)
        gone = await admin("CancelScheduledTable", schedule_id=schedule_id, reason="no more")
        assert gone.scheduled.cancelled
        assert not gone.scheduled.HasField("opens_at")
        with pytest.raises(NotFound):
            await admin("CancelScheduledTable", schedule_id=str(uuid4()))


async def test_times_that_are_none_are_refused(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        await admin("PutTemplate", name="night", table=like())
        for field, fields in (
            ("opens_at", {}),
            ("opens_at", {"opens_at": in_seconds(-3600)}),
            ("opens_at", {"opens_at": Timestamp(seconds=2**40)}),
            ("closes_at", {"opens_at": in_seconds(60), "closes_at": in_seconds(30)}),
            (
                "closes_at",
                {
                    "opens_at": in_seconds(60),
                    "closes_at": in_seconds(100_000),
                    "repeat": pb.REPEAT_DAILY,
                },
            ),
            ("tables", {"opens_at": in_seconds(60), "tables": 101}),
        ):
            with pytest.raises(InvalidArgument) as refused:
                await admin("ScheduleTable", template="night", **fields)
            assert refused.value.violations[0][0] == field
        assert not await tables.replicas[0].store.shelves.read(schedules.SHELF)
        with pytest.raises(NotFound):
            await admin("ScheduleTable", template="day", opens_at=in_seconds(60))


async def test_a_table_is_paused_rested_resumed_inspected_and_closed(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        table_id = await tables.create()
        await tables.take_seat(table_id, "anna")
        await tables.take_seat(table_id, "ben")

        async def hand() -> str:
            return (await admin.view(table_id)).hand.hand_id

        hand_id = await until(hand)
        named: dict[str, Any] = {"table_id": table_id, "reason": "a look"}
        paused = await admin("PauseTable", **named)
        inspected = await admin("InspectTable", roles="auditor", table_id=table_id)
        assert inspected.table.version == paused.version
        assert (inspected.table.state, inspected.reason) == (table_pb2.TABLE_STATE_PAUSED, "a look")
        assert not any(seat.down_cards for seat in inspected.table.hand.seats)
        assert sum(seat.down_count for seat in inspected.table.hand.seats) == 4
        await admin("ResumeTable", table_id=table_id)
        assert not (await admin("SetMaintenance", **named)).begun
        await admin("VoidHand", **named, hand_id=hand_id)
        rested = await admin("InspectTable", table_id=table_id)
        assert rested.table.state == table_pb2.TABLE_STATE_MAINTENANCE
        await admin("Announce", table_id=table_id, text="Closing soon.")
        assert (await admin("RemovePlayer", **named, player_id="ben")).left
        assert (await admin("CloseTable", **named)).closed
        assert (await admin.view(table_id)).announcement == "Closing soon."
        actions = [each.action for each in await admin.records() if each.table_id == table_id]
        assert actions == [
            "create_table",
            "pause_table",
            "resume_table",
            "set_maintenance",
            "void_hand",
            "announce",
            "remove_player",
            "close_table",
        ]


async def test_a_broken_up_table_sends_its_players_to_one_like_it_and_is_closed(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        table_id, like_it = [await tables.create(name=f"Table {n}") for n in range(2)]
        await tables.take_seat(table_id, "anna")
        order = {"request_id": str(uuid4()), "table_id": table_id, "reason": "too few"}
        broken = await admin("BreakTable", **order)
        assert [(each.player_id, each.table_id) for each in broken.moved] == [("anna", like_it)]
        assert not broken.unplaced
        view = await admin.view(table_id)
        assert (view.state, len(view.seats)) == (table_pb2.TABLE_STATE_CLOSED, 0)
        # Repeated when it is done: nothing more happens, and the same players are named.
        assert await admin("BreakTable", **order) == broken
        await tables.take_seat(like_it, "anna")
        lonely = await admin("BreakTable", table_id=like_it, reason="the last one")
        assert list(lonely.unplaced) == ["anna"]
        actions = [each.action for each in await admin.records() if each.table_id == table_id]
        assert actions == ["create_table", "break_table", "break_table"]


async def test_what_is_said_in_the_room_comes_to_every_table(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        ids = [await tables.create(name=f"Table {n}") for n in range(6)]
        asked: dict[str, Any] = {"text": "The room closes at ten.", "request_id": str(uuid4())}
        await admin("Announce", **asked)
        assert not (await admin("ListScheduledTables")).scheduled
        await admin("Announce", **asked)

        async def told() -> bool:
            said = [(await admin.view(each)).announcement for each in ids]
            return said == [asked["text"]] * 6

        await until(told)
        records = [each for each in await admin.records() if each.action == "announce"]
        assert [each.subject for each in records] == ["announcement"]


async def test_reasons_texts_and_ids_are_checked(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        table_id = await tables.create()
        for method, fields in (
            ("PauseTable", {"table_id": table_id}),
            ("CloseTable", {"table_id": table_id, "reason": "x" * 201}),
            ("PauseTable", {"table_id": "none", "reason": "x"}),
            ("PauseTable", {"table_id": table_id, "reason": "x", "request_id": "no id"}),
            ("Announce", {"table_id": table_id, "text": "x" * 201}),
            ("RemovePlayer", {"table_id": table_id, "reason": "x", "player_id": ""}),
            ("VoidHand", {"table_id": table_id, "reason": "x", "hand_id": "none"}),
            ("ListTemplates", {"page_size": 201}),
        ):
            with pytest.raises(InvalidArgument):
                await admin(method, **fields)
        with pytest.raises(NotFound):
            await admin("PauseTable", table_id=str(uuid4()), reason="x")


@pytest.mark.parametrize("role", ["player", "service", "auditor"])
async def test_only_operators_change_tables(room: Room, server: valkey.Valkey, role: str) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        for method in pb.DESCRIPTOR.services_by_name["TableAdminService"].methods_by_name:
            reads = method in {
                "GetTemplate",
                "ListTemplates",
                "ListScheduledTables",
                "InspectTable",
            }
            if reads and role == "auditor":
                continue
            with pytest.raises(PermissionDenied):
                await admin(method, roles=role)


async def test_a_template_is_no_table(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        await admin("PutTemplate", name="night", table=like())
        with pytest.raises(NotFound):
            await admin.view(template_id("night"))
        with pytest.raises(NotFound):
            await admin("PauseTable", table_id=template_id("night"), reason="x")


async def test_what_fails_is_said_in_the_list_and_goes_on_when_it_can(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        await admin("PutTemplate", name="night", table=like(rake_schedule_id="standard"))
        ask = tables.wallet.fake.on_GetRakeSchedule
        away = NotFound("SCHEDULE_UNKNOWN", "not there")

        async def refuse(_request: Any) -> Any:
            raise away

        tables.wallet.fake.on_GetRakeSchedule = refuse  # type: ignore[method-assign,assignment]
        with pytest.raises(NotFound):
            await admin("PutTemplate", name="day", table=like(rake_schedule_id="none"))
        asked = await admin("ScheduleTable", template="night", opens_at=in_seconds(0))

        async def fault() -> str:
            (listed,) = (await admin("ListScheduledTables")).scheduled
            return str(listed.fault)

        assert await until(fault) == "SCHEDULE_UNKNOWN"
        tables.wallet.fake.on_GetRakeSchedule = ask  # type: ignore[method-assign]

        async def opened() -> Any:
            try:
                return await admin.view(scheduled_table_id(asked.scheduled.schedule_id, 0, 0))
            except NotFound:
                return None

        assert (await until(opened)).config.rake_schedule_id == "standard"


async def test_a_closed_table_leaves_the_lobby_later_and_stays_known(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        replica = tables.replicas[0]
        closed, still = [await tables.create(name=f"Table {n}") for n in range(2)]
        await tables.take_seat(closed, "anna")
        await admin("CloseTable", table_id=closed, reason="not needed")

        async def listed(kept_ms: int) -> set[str]:
            looking = ClosedTables(replica.store, replica.tables, kept_ms=kept_ms)
            for shard in range(SHARDS):
                await looking.look_at(shard)
            ids = [await replica.store.ids_listed(shard) for shard in range(SHARDS)]
            return {table_id for each in ids for table_id in each}

        assert await listed(3_600_000) == {closed, still}
        # Who left is remembered until the ledger has his money.
        assert await listed(-1) == {closed, still}

        async def forgotten(draft: Draft) -> None:
            draft.table.blob.remembered.clear()
            draft.changed = True

        await replica.tables.change(closed, TICKS, "forget", forgotten)
        assert await listed(-1) == {still}
        assert (await admin.view(closed)).state == table_pb2.TABLE_STATE_CLOSED
        with pytest.raises(FailedPrecondition):
            await admin("PauseTable", table_id=closed, reason="x")
