"""Seat options, actions chosen beforehand and shown cards, over unary calls and on streams."""

import asyncio
from typing import Any
from uuid import uuid4

import grpc
import pytest
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2

from services.runtime.errors import Code, DoorcardError
from tests import valkey
from tests.choices import passive
from tests.conftest import Room
from tests.contract.table.gateways import Gateway, frame
from tests.contract.table.replicas import cluster
from tests.contract.table.test_gateways_over_streams import PLAYERS, opened

Kind = table_pb2.PreAction


def chosen(gateway: Gateway, table_id: str, kind: Any, street: int = 3) -> table_pb2.SeatOptions:
    """Options with an action for the running hand."""
    hand_id = gateway.followed[table_id, PLAYERS[0]].hand_id
    action = table_pb2.PreAction(kind=kind, hand_id=hand_id, street=street)
    return table_pb2.SeatOptions(auto_ante=True, next_action=action)


async def test_a_player_of_a_gateway_acts_as_he_chose_beforehand(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        (table_id,), gateway = await opened(tables, 1)
        seen = gateway.followed[table_id, PLAYERS[0]]
        await gateway.until(lambda: seen.turn)
        assert seen.turn is not None
        first = seen.turn.seat
        player = PLAYERS[(first + 1) % 3]
        options = table_pb2.PlayOptions(
            options=chosen(gateway, table_id, Kind.KIND_CALL_ANY), confirm_ante=False
        )
        (result,) = await gateway.asked(frame(table_id, player, options=options))
        assert result.version
        own = gateway.followed[table_id, player]
        await gateway.until(lambda: any(each.HasField("options_changed") for each in own.events))
        for other in PLAYERS:
            told = gateway.followed[table_id, other].events
            assert any(e.HasField("options_changed") for e in told) == (other == player)
        (acted,) = await gateway.asked(gateway.act(table_id, PLAYERS[first], passive(seen.turn)))
        await gateway.until(lambda: seen.version >= acted.version)
        (update,) = [
            each.update
            for each in gateway.frames
            if each.update.version == acted.version and not each.player_ids
        ]
        kinds = [e.hand.WhichOneof("event") for e in update.events if e.HasField("hand")]
        assert kinds == ["brought_in", "called"], "both stand in one version"
        assert seen.turn.seat == (first + 2) % 3
        gateway.call.cancel()


async def test_options_are_set_by_a_unary_call_and_shown_to_their_player_only(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        (table_id,), gateway = await opened(tables, 1)
        await gateway.until(lambda: gateway.followed[table_id, PLAYERS[0]].turn)
        stub, me = tables.stub(), room.metadata(PLAYERS[0])
        request = table_pb2.SetSeatOptionsRequest(
            request_id=str(uuid4()),
            table_id=table_id,
            options=table_pb2.SeatOptions(auto_ante=True, show_beaten=True),
        )
        answers = {(await stub.SetSeatOptions(request, metadata=me)).version for _ in range(3)}
        assert len(answers) == 1, "what is so already takes no version"
        get = table_pb2.GetTableRequest(table_id=table_id)
        assert (await stub.GetTable(get, metadata=me)).table.own_options.show_beaten
        others = await stub.GetTable(get, metadata=room.metadata("olga"))
        assert not others.table.HasField("own_options")

        async def refused(**wrong: Any) -> DoorcardError:
            changed = table_pb2.SetSeatOptionsRequest()
            changed.CopyFrom(request)
            changed.options.next_action.CopyFrom(table_pb2.PreAction(**wrong))
            with pytest.raises(grpc.RpcError) as caught:
                await stub.SetSeatOptions(changed, metadata=me)
            return DoorcardError.from_rpc(caught.value)

        hand_id = str(uuid4())
        for wrong, field in (
            ({"kind": 1, "hand_id": "x", "street": 3}, "options.next_action.hand_id"),
            ({"kind": 9, "hand_id": hand_id, "street": 3}, "options.next_action.kind"),
            ({"kind": 1, "hand_id": hand_id, "street": 8}, "options.next_action.street"),
        ):
            error = await refused(**wrong)
            assert (error.code, error.violations[0][0]) == (Code.INVALID_ARGUMENT, field)
        gateway.call.cancel()


async def test_the_winner_shows_his_cards_to_all(room: Room, server: valkey.Valkey) -> None:
    async with cluster(room, server) as tables, asyncio.timeout(60):
        await tables.add_replica()
        table_id = await tables.create(hand_pause_ms=5_000)
        gateway = Gateway(tables.stub(), room, ("web-",))
        await gateway.asked(*(gateway.join(table_id, each) for each in PLAYERS))
        for player in PLAYERS:
            await tables.take_seat(table_id, player)
        seen = gateway.followed[table_id, PLAYERS[0]]
        fold = game_pb2.Action(kind=game_pb2.ACTION_KIND_FOLD)
        acting: list[str] = []
        for step in range(3):
            await gateway.until(
                lambda: seen.turn is not None and seen.turn.turn == step  # noqa: B023
            )
            assert seen.turn is not None
            acting.append(PLAYERS[seen.turn.seat])
            action = fold if step else passive(seen.turn)
            (result,) = await gateway.asked(gateway.act(table_id, acting[-1], action))
            assert not result.HasField("refusal")
        await gateway.until(lambda: seen.hands_ended)
        winner, loser = acting[0], acting[1]
        down = [
            event.hand.dealt.card
            for event in gateway.followed[table_id, winner].events
            if event.hand.dealt.card and not event.hand.dealt.up
        ]
        stub = tables.stub()

        def request(hand_id: str = seen.hands_ended[0]) -> table_pb2.ShowCardsRequest:
            return table_pb2.ShowCardsRequest(
                request_id=str(uuid4()), table_id=table_id, hand_id=hand_id
            )

        for by, asked, reason in (
            (loser, request(), "NOTHING_TO_SHOW"),
            (winner, request(str(uuid4())), "HAND_GONE"),
            ("web-nobody", request(), "NOT_SEATED"),
        ):
            with pytest.raises(grpc.RpcError) as caught:
                await stub.ShowCards(asked, metadata=room.metadata(by))
            assert DoorcardError.from_rpc(caught.value).reason == reason
        mine = request()
        shown = [
            (await stub.ShowCards(mine, metadata=room.metadata(winner))).version for _ in range(2)
        ]
        assert shown[0] == shown[1]
        await gateway.until(lambda: seen.version >= shown[0])
        (event,) = [each.cards_shown for each in seen.events if each.HasField("cards_shown")]
        assert list(event.cards)[:2] == down
        gateway.call.cancel()
