"""`doorcard tables` and `doorcard players`: a real wallet beside tables as they are staged."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2, table_pb2_grpc
from grpc import aio
from structlog.testing import capture_logs
from typer.testing import CliRunner

from services.local.__main__ import app
from services.runtime.errors import NotFound
from services.runtime.server import serving
from services.runtime.settings import ServiceSettings
from tests.contract.wallet.conftest import FAR_TABLE, TABLE, Start, Wallet, two_seats

STAKE = game_pb2.Stake(name="5/10", small_bet=5, big_bet=10)
GONE = "5f0c2d6e-6d3c-4b53-9a52-0000000fffff"


def summary(table_id: str, name: str, **fields: Any) -> table_pb2.TableSummary:
    config = table_pb2.TableConfig(
        table_id=table_id,
        name=name,
        game=game_pb2.GAME_HI_LO,
        rulebook="club",
        stake=STAKE,
        seats=6,
        currency="EUR",
        format=table_pb2.TableFormat(kind=table_pb2.FORMAT_KIND_CASH),
    )
    fields = {"state": table_pb2.TABLE_STATE_OPEN, **fields}
    return table_pb2.TableSummary(config=config, **fields)


class StagedTables(table_pb2_grpc.TableServiceServicer):
    """Three tables, one of them gone as soon as it was listed, a page each."""

    def __init__(self) -> None:
        self.filters: list[table_pb2.LobbyFilter] = []
        self.lines = [
            summary(TABLE, "First", players=2, hands=12, average_pot=40),
            summary(FAR_TABLE, "Second", state=table_pb2.TABLE_STATE_PAUSED),
            summary(GONE, "Third", players=1),
        ]

    async def ListTables(self, request: Any, _context: Any) -> Any:  # noqa: N802
        self.filters.append(request.filter)
        at = int(request.page_token or 0)
        token = str(at + 1) if at + 1 < len(self.lines) else ""
        return table_pb2.ListTablesResponse(tables=self.lines[at : at + 1], next_page_token=token)

    async def GetTable(self, request: Any, _context: Any) -> Any:  # noqa: N802
        if request.table_id != TABLE:
            raise NotFound("TABLE_UNKNOWN", "there is no such table")
        view = table_pb2.TableView(config=self.lines[0].config)
        state = table_pb2.SEAT_STATE_PLAYING
        view.seats.add(seat=0, player_id="anna", name="Anna", stack=90, state=state, connected=True)
        view.seats.add(
            seat=4, player_id="ben", name="Ben", stack=110, state=table_pb2.SEAT_STATE_SITTING_OUT
        )
        return table_pb2.GetTableResponse(table=view)


class Command:
    """`doorcard ARGUMENTS` against both."""

    def __init__(self, wallet: Wallet, tables: str) -> None:
        self._env = {
            "DOORCARD_WALLET_ADDRESS": wallet.address,
            "DOORCARD_TABLE_ADDRESSES": tables,
            "DOORCARD_TOKEN": wallet.room.token("aud", ("auditor",)),
            "COLUMNS": "200",
        }

    async def __call__(self, *arguments: str, **env: str) -> tuple[int, str]:
        runner = CliRunner(env=self._env | env)
        # The servers in this process log to the same output.
        with capture_logs():
            result = await asyncio.to_thread(runner.invoke, app, list(arguments))
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.stdout or result.output

    async def found(self, *arguments: str) -> Any:
        status, text = await self(*arguments, "--json")
        assert status == 0
        return json.loads(text)


@asynccontextmanager
async def lobby(start: Start) -> AsyncIterator[tuple[Wallet, StagedTables, Command]]:
    async with start() as wallet:
        tables = StagedTables()  # type: ignore[abstract]  # the commands call no more of it

        async def register(server: aio.Server) -> list[str]:
            table_pb2_grpc.add_TableServiceServicer_to_server(tables, server)
            return ["doorcard.table.v1.TableService"]

        settings = wallet.room.settings(ServiceSettings, service="table")
        async with serving(settings, register) as running:
            yield wallet, tables, Command(wallet, running.address)


async def test_every_page_of_tables_is_listed_as_the_filter_has_them(start: Start) -> None:
    async with lobby(start) as (_, tables, doorcard):
        found = await doorcard.found("tables")
        assert [each["name"] for each in found] == ["First", "Second", "Third"]
        assert {
            "table": TABLE,
            "game": "hi_lo",
            "rulebook": "club",
            "format": "cash",
            "stake": "5/10",
            "currency": "EUR",
            "state": "open",
            "players": 2,
            "seats": 6,
            "hands": 12,
            "average_pot": 40,
        }.items() <= found[0].items()
        assert tables.filters[-1] == table_pb2.LobbyFilter()
        arguments = ["--game", "razz", "--game", "hi_lo", "--state", "paused", "--free-seats", "2"]
        await doorcard(
            "tables", *arguments, "--rulebook", "club", "--players", "1", "--format", "timed"
        )
        assert tables.filters[-1] == table_pb2.LobbyFilter(
            games=[game_pb2.GAME_RAZZ, game_pb2.GAME_HI_LO],
            states=[table_pb2.TABLE_STATE_PAUSED],
            rulebook="club",
            formats=[table_pb2.FORMAT_KIND_TIMED],
            players_min=1,
            free_seats_min=2,
        )


async def test_tables_are_lines_for_people(start: Start) -> None:
    async with lobby(start) as (_, tables, doorcard):
        status, text = await doorcard("tables")
        assert status == 0
        first = next(line.split() for line in text.splitlines() if TABLE in line)
        assert first == ["First", "hi_lo", "(club)", "5/10", "EUR", "open", "2/6", "12", TABLE]
        tables.lines.clear()
        assert await doorcard("tables") == (0, "no such table\n")
        assert await doorcard("players") == (0, "no such player\n")


async def test_players_are_listed_by_seat_with_stack_and_wallet(start: Start) -> None:
    async with lobby(start) as (wallet, tables, doorcard):
        await two_seats(wallet)
        await wallet.deposit("ben", 7)
        await wallet.deposit("carl", 5, "JPY")
        found = await doorcard.found("players")
        assert tables.filters[-1] == table_pb2.LobbyFilter(players_min=1)
        anna, ben = found
        assert (anna["player"], anna["name"], anna["table"], anna["seat"]) == (
            ("anna", "Anna", TABLE, 0)
        )
        assert (anna["stack"], anna["available"], anna["in_play"]) == (90, 0, 100)
        assert (ben["state"], ben["connected"], ben["available"]) == ("sitting out", False, 7)
        assert await doorcard.found("players", "--player", "ben") == [ben]
        assert await doorcard.found("players", "--table", TABLE) == found
        assert await doorcard.found("players", "--table", FAR_TABLE) == []
        status, text = await doorcard("players")
        assert status == 0
        assert "sitting out, away" in text
        assert "carl" not in text


async def test_everybody_with_an_account_may_be_listed_too(start: Start) -> None:
    async with lobby(start) as (wallet, _, doorcard):
        await two_seats(wallet)
        await wallet.deposit("carl", 5, "JPY")
        *_, carl = everybody = await doorcard.found("players", "--all")
        assert [each["player"] for each in everybody] == ["anna", "ben", "carl"]
        assert (carl["state"], carl["seat"], carl["available"]) == ("not seated", None, 5)
        assert await doorcard.found("players", "--all", "--player", "carl") == [carl]


async def test_a_room_that_cannot_be_asked_is_said_with_status_2(start: Start) -> None:
    async with lobby(start) as (wallet, _, doorcard):
        status, text = await doorcard("players", DOORCARD_TOKEN=wallet.room.token("anna"))
        assert status == 2
        assert text.startswith("NOT_YOUR_PLAYER: ")
        status, text = await doorcard("tables", DOORCARD_TABLE_ADDRESSES="127.0.0.1:x")
        assert (status, text.startswith("no tables: ")) == (2, True)
