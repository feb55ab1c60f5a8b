"""A table comes back to a stream on which it was followed a moment ago."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from doorcard.table.v1 import table_pb2, table_pb2_grpc

from services.client import RoutedPlay, Routes
from tests import valkey
from tests.conftest import Room
from tests.contract.table.replicas import cluster
from tests.contract.table.routed_players import Player, dialler

PLAYERS = ("web-anna", "web-ben", "web-carla")


class Signposts(Routes):
    """Routes that lead where the test says."""

    to = ""

    def address_of(self, table_id: str) -> str:
        """The same for all tables."""
        del table_id
        return self.to

    def lead(self, address: str) -> None:
        """All tables move."""
        self.to = address
        for tell in list(self.changed):
            tell()


@asynccontextmanager
async def played(room: Room, server: valkey.Valkey) -> AsyncIterator[tuple[Player, Signposts, str]]:
    """A table that a gateway plays for three, and the address where it is played."""
    async with cluster(room, server) as around, asyncio.timeout(60):
        await around.add_replica()
        table_id = await around.create(hand_pause_ms=20)
        here = around.running[0].address
        dial = dialler(room, "web", ("service",), act_for=("web-",))
        routes = Signposts([here], dial)
        routes.lead(here)
        async with routes, RoutedPlay(routes, gateway=True) as play:
            gateway = Player(play)
            running = asyncio.create_task(gateway.run())
            for name in PLAYERS:
                await gateway.sit(table_id, await around.take_seat(table_id, name), name)
            yield gateway, routes, here
            running.cancel()


async def hands_go_on(gateway: Player) -> None:
    """Everybody sees two more hands end, of which one began after this."""
    hands = {key: len(sight.ended) for key, sight in gateway.sights.items()}
    await gateway.until(lambda: all(len(s.ended) > hands[k] + 1 for k, s in gateway.sights.items()))


@pytest.mark.parametrize("refused", [False, True])
async def test_a_table_that_comes_back_before_it_was_joined_elsewhere_is_followed_on(
    room: Room, server: valkey.Valkey, refused: bool
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{closed.getsockname()[1]}"
        async with played(room, server) as (gateway, routes, here):
            for _ in range(3):
                opened = gateway.play.streams_opened
                routes.lead(nobody)
                while refused and gateway.play.streams_opened < opened + 3:
                    await asyncio.sleep(0.01)
                routes.lead(here)
                await hands_go_on(gateway)
            assert [sight.snapshots for sight in gateway.sights.values()] == [1, 1, 1]
            assert not gateway.refused


class LateNews(table_pb2_grpc.TableServiceServicer):
    """One table, of which a player who parts is told something on the way."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def Play(self, requests: Any, _context: Any) -> AsyncIterator[Any]:  # noqa: N802
        async for request in requests:
            for each in request.frames:
                self.asked.append(f"{each.WhichOneof('frame')} {each.player_id}")
                if each.HasField("part"):
                    yield told(each, update=table_pb2.TableUpdate(version=7))
                else:
                    yield told(each, snapshot=table_pb2.TableView(version=7))
                result = table_pb2.RequestResult(request_id=each.request_id, version=7)
                yield told(each, result=result)


def told(asked: table_pb2.PlayRequestFrame, **what: Any) -> table_pb2.PlayResponse:
    """A frame for the player who asked."""
    frame = table_pb2.PlayResponseFrame(
        table_id=asked.table_id, player_ids=[asked.player_id], **what
    )
    return table_pb2.PlayResponse(frames=[frame])


async def test_who_parts_and_joins_again_at_once_joins_when_nothing_is_on_its_way() -> None:
    server, room = grpc.aio.server(), LateNews()  # type: ignore[abstract]
    table_pb2_grpc.add_TableServiceServicer_to_server(room, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    routes = Signposts([address], grpc.aio.insecure_channel)
    routes.lead(address)
    async with asyncio.timeout(30), RoutedPlay(routes, gateway=True) as play:
        await play.join("table", "web-ben")
        await play.join("table", "web-anna")
        for _ in range(3):
            play.part("table", "web-anna")
            await play.join("table", "web-anna")
        assert play.streams_opened == 1
        again = ["part web-anna", "join web-anna"] * 3
        assert room.asked == ["join web-ben", "join web-anna", *again]
    await routes.channel(address).close()
    await server.stop(None)
