"""Whatever is wrong with a call has its status, its reason, and no effect."""

import asyncio
from typing import Any
from uuid import uuid4

import grpc
import pytest
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2

from services.runtime.errors import Code, DoorcardError
from tests import valkey
from tests.conftest import Room
from tests.contract.table.replicas import Cluster, Seated, cluster

CALL = game_pb2.Action(kind=game_pb2.ACTION_KIND_CALL)
BRING_IN = game_pb2.Action(kind=game_pb2.ACTION_KIND_BRING_IN)


async def error_of(call: Any) -> DoorcardError:
    """The typed error that a call ends with."""
    with pytest.raises(grpc.RpcError) as caught:
        await call
    return DoorcardError.from_rpc(caught.value)


async def started(tables: Cluster) -> tuple[Seated, Seated, str]:
    """A hand of two: the stream of who is to act, the other's, the table."""
    await tables.add_replica()
    table_id = await tables.create()
    streams = {}
    for player in ("anna", "ben"):
        seat = await tables.take_seat(table_id, player)
        streams[seat] = Seated(tables.stub(), tables.room.metadata(player), table_id)
        await streams[seat].join()
    first = streams[0]
    await first.until(lambda: first.turn is not None)
    assert first.turn is not None
    actor, other = streams[first.turn.seat], streams[1 - first.turn.seat]
    await actor.until_turn(first.hand_id, first.turn.turn)
    await other.until_turn(first.hand_id, first.turn.turn)
    return actor, other, table_id


async def test_wrong_actions_over_unary_calls(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        actor, _, table_id = await started(tables)
        stub = tables.stub()
        assert actor.turn is not None
        player = ("anna", "ben")[actor.turn.seat]
        right: dict[str, Any] = {
            "request_id": str(uuid4()),
            "table_id": table_id,
            "hand_id": actor.hand_id,
            "turn": actor.turn.turn,
            "action": BRING_IN,
        }

        async def refused(by: str = player, **wrong: Any) -> DoorcardError:
            request = table_pb2.ActRequest(**{**right, **wrong})
            return await error_of(stub.Act(request, metadata=room.metadata(by)))

        error = await refused(by="ben" if player == "anna" else "anna")
        assert (error.code, error.reason) == (Code.FAILED_PRECONDITION, "NOT_YOUR_TURN")
        error = await refused(turn=7)
        assert (error.code, error.reason) == (Code.FAILED_PRECONDITION, "STALE_TURN")
        assert error.metadata["turn"] == "0"
        error = await refused(hand_id=str(uuid4()))
        assert error.reason == "STALE_TURN"
        wager = game_pb2.Action(kind=game_pb2.ACTION_KIND_COMPLETE, amount=9)
        error = await refused(action=wager)
        assert (error.code, error.reason) == (Code.FAILED_PRECONDITION, "ILLEGAL_AMOUNT")
        assert error.metadata["rule"]
        error = await refused(action=CALL)
        assert error.reason == "ILLEGAL_ACTION"
        error = await refused(table_id=str(uuid4()))
        assert (error.code, error.reason) == (Code.NOT_FOUND, "TABLE_UNKNOWN")
        for field in ("table_id", "hand_id", "request_id"):
            error = await refused(**{field: "?"})
            assert error.code is Code.INVALID_ARGUMENT
            assert error.violations[0][0] == field
        error = await refused(action=game_pb2.Action())
        assert error.violations[0][0] == "action.kind"
        error = await refused(by="stranger")
        assert error.reason == "NOT_SEATED"

        request = table_pb2.ActRequest(**right)
        answers = [await stub.Act(request, metadata=room.metadata(player)) for _ in range(3)]
        assert len({answer.version for answer in answers}) == 1


async def test_tokens_decide_who_acts(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        actor, _, table_id = await started(tables)
        stub = tables.stub()
        assert actor.turn is not None
        player = ("anna", "ben")[actor.turn.seat]
        request = table_pb2.ActRequest(
            request_id="r1",
            table_id=table_id,
            hand_id=actor.hand_id,
            turn=actor.turn.turn,
            action=BRING_IN,
        )
        error = await error_of(stub.Act(request))
        assert error.code is Code.UNAUTHENTICATED
        gateway = room.metadata("gateway", ("service",), act_for=("guest-",))
        error = await error_of(
            stub.Act(request, metadata=[*gateway, ("x-doorcard-player", player)])
        )
        assert error.code is Code.PERMISSION_DENIED
        error = await error_of(
            stub.Act(request, metadata=[*room.metadata("eve"), ("x-doorcard-player", player)])
        )
        assert error.code is Code.PERMISSION_DENIED
        error = await error_of(stub.Act(request, metadata=room.metadata("olga", ("operator",))))
        assert error.code is Code.PERMISSION_DENIED
        ours = room.metadata("gateway", ("service",), act_for=(player,))
        answer = await stub.Act(request, metadata=[*ours, ("x-doorcard-player", player)])
        assert answer.version
        error = await error_of(
            stub.CreateTable(table_pb2.CreateTableRequest(), metadata=room.metadata("anna"))
        )
        assert error.code is Code.PERMISSION_DENIED


async def test_a_stream_answers_what_is_wrong_and_stays_open(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        actor, other, table_id = await started(tables)
        result = await other.act(BRING_IN)
        assert (result.refusal.code, result.refusal.reason) == (9, "NOT_YOUR_TURN")
        result = await actor.act(BRING_IN, turn=3)
        assert result.refusal.metadata["turn"] == "0"
        bad = table_pb2.PlayRequestFrame(request_id="x", table_id=str(uuid4()))
        bad.join.from_version = 0
        await actor.call.write(table_pb2.PlayRequest(frames=[bad]))
        await actor.until(lambda: "x" in actor.results)
        assert (actor.results["x"].refusal.code, actor.results["x"].refusal.reason) == (
            5,
            "TABLE_UNKNOWN",
        )
        unjoined = Seated(tables.stub(), room.metadata("anna"), table_id)
        unjoined.turn, unjoined.hand_id = actor.turn, actor.hand_id
        result = await unjoined.act(BRING_IN)
        assert result.refusal.reason == "NOT_JOINED"
        result = await actor.act(BRING_IN, request_id="once")
        again = await actor.act(BRING_IN, request_id="once", turn=0)
        assert result.version == again.version > 0

        flood = table_pb2.PlayRequest(frames=[bad] * 65)
        await actor.call.write(flood)
        with pytest.raises(grpc.RpcError) as caught:
            await actor.until(lambda: False)
        assert DoorcardError.from_rpc(caught.value).code is Code.INVALID_ARGUMENT


async def test_no_role_sees_a_hidden_card(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        actor, _, table_id = await started(tables)
        assert actor.turn is not None
        player = ("anna", "ben")[actor.turn.seat]
        stub = tables.stub()
        request = table_pb2.GetTableRequest(table_id=table_id)
        callers = [room.metadata("x", (role,)) for role in ("operator", "service", "auditor")]
        callers += [room.metadata("stranger"), room.metadata(player)]
        for metadata in callers:
            view = (await stub.GetTable(request, metadata=metadata)).table
            seen = {seat.seat: len(seat.down_cards) for seat in view.hand.seats}
            own = actor.turn.seat if metadata is callers[-1] else -1
            assert seen == {number: 2 if number == own else 0 for number in (0, 1)}
        watching = stub.WatchTable(
            table_pb2.WatchTableRequest(table_id=table_id), metadata=room.metadata(player)
        )
        message = await watching.read()
        assert isinstance(message, table_pb2.WatchTableResponse)
        assert not any(seat.down_cards for seat in message.frames[0].snapshot.hand.seats)
        watching.cancel()
        unknown = stub.WatchTable(
            table_pb2.WatchTableRequest(table_id=str(uuid4())), metadata=room.metadata("anna")
        )
        with pytest.raises(grpc.RpcError) as caught:
            await unknown.read()
        assert DoorcardError.from_rpc(caught.value).reason == "TABLE_UNKNOWN"


async def test_tables_are_listed_in_pages(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables:
        stub = await tables.add_replica()
        created = {await tables.create(name=f"Table {n}") for n in range(7)}
        found: list[str] = []
        token = ""
        for _ in range(10):
            page = await stub.ListTables(
                table_pb2.ListTablesRequest(page_size=3, page_token=token),
                metadata=room.metadata("anna"),
            )
            assert len(page.tables) <= 3
            found += [each.config.table_id for each in page.tables]
            token = page.next_page_token
            if not token:
                break
        assert sorted(found) == sorted(created)
        wrongs: tuple[dict[str, Any], ...] = (
            {"page_size": 201},
            {"page_token": "x"},
            {"page_token": "99:x"},
            {"page_token": f"{'9' * 5000}:{uuid4()}"},
        )
        for wrong in wrongs:
            error = await error_of(
                stub.ListTables(
                    table_pb2.ListTablesRequest(**wrong),
                    metadata=room.metadata("anna"),
                )
            )
            assert error.code is Code.INVALID_ARGUMENT


async def test_a_rulebook_full_of_faults_is_an_answer_like_any_other(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        stub = await tables.add_replica()
        for toml in ("\n".join(f"house_{n} = {n}" for n in range(3000)), f"game = {'[' * 60_000}"):
            request = table_pb2.CreateTableRequest(
                request_id=str(uuid4()),
                name="Table one",
                rulebook_toml=toml,
                stake_name="5/10",
                seats=6,
                currency="XTS",
            )
            error = await error_of(
                stub.CreateTable(request, metadata=room.metadata("olga", ("operator",)))
            )
            assert (error.code, error.reason) == (Code.INVALID_ARGUMENT, "BAD_TABLE")
            assert error.violations


@pytest.mark.parametrize("sent", [b"\xff\xff\xff", b"\x0a\x04\x0a\x02\xff\xfe"])
async def test_a_player_who_sends_what_is_no_message_has_cut_his_stream_himself(
    room: Room, server: valkey.Valkey, sent: bytes
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        actor, other, table_id = await started(tables)
        assert actor.turn is not None
        seat, player = actor.turn.seat, ("anna", "ben")[actor.turn.seat]
        async with grpc.aio.insecure_channel(tables.running[0].address) as channel:
            play: Any = channel.stream_stream("/doorcard.table.v1.TableService/Play")
            call = play(metadata=room.metadata(player))
            join = table_pb2.PlayRequestFrame(
                request_id=str(uuid4()), table_id=table_id, join=table_pb2.JoinTable()
            )
            await call.write(table_pb2.PlayRequest(frames=[join]).SerializeToString())
            await call.read()
            actor.call.cancel()
            await call.write(sent)
            assert (await error_of(_read_out(call))).reason == "MALFORMED"

        def gone() -> bool:
            changed = [e.seat_changed.seat for e in events_of(other) if e.HasField("seat_changed")]
            return any(each.seat == seat and not each.connected for each in changed)

        # His seat does not stay connected, as that of a player does whom the room cut off.
        await other.until(gone)
        other.call.cancel()


def events_of(seated: Seated) -> list[table_pb2.TableEvent]:
    """All that was told in updates."""
    return [event for frame in seated.frames for event in frame.update.events]


async def _read_out(call: Any) -> None:
    while await call.read() is not grpc.aio.EOF:
        pass
    raise grpc.aio.AioRpcError(
        await call.code(),
        await call.initial_metadata(),
        await call.trailing_metadata(),
        await call.details(),
    )
