"""A whole room whose Redis starts again with a file that lacks what the ledger has."""

import os
import signal
from pathlib import Path

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2
from doorcard.wallet.v1 import wallet_pb2

from tests.integration.rooms import (
    Client,
    Command,
    client,
    command,
    new_home,
    player_to_act,
    until,
)
from tests.integration.test_a_restart_in_the_middle_of_a_hand import HALF_WAY, PLAYERS, played_on

pytestmark = [pytest.mark.deep, pytest.mark.timeout(240)]


async def test_tables_have_what_the_ledger_has_and_play_goes_on() -> None:
    with new_home() as home:
        with command(home, "up", "--free-ports") as first:
            async with client(first.until_up()) as at:
                table_id = await at.create_table()
                await at.sit_down(table_id, PLAYERS)
                half_way = await played_on(at, table_id, until_street=HALF_WAY)
                file = appended(home)
                size = file.stat().st_size
                await one_folds(at, half_way)
                posted = await until(lambda: settled(at))
            kill(first)
        (home / "room.json").unlink(missing_ok=True)
        # As after a power cut, when the rest had not reached the disk.
        os.truncate(file, size)

        with command(home, "up", "--free-ports") as second:
            async with client(second.until_up()) as at:
                view = await at.until(table_id, lambda table: table.HasField("rebuilt"))
                assert view.version >> 32 == 2
                assert view.rebuilt.void_hand_id == half_way.hand.hand_id
                money = {seat.player_id: seat.stack for seat in view.seats}
                for seat in view.hand.seats:
                    number = {each.seat: each.player_id for each in view.seats}[seat.seat]
                    money[number] += seat.put_in
                assert money == posted
                await played_on(at, table_id)
                await at.until(table_id, lambda table: table.hands > view.hands)
            assert second.stop() == 130, second.output()


async def one_folds(at: Client, view: table_pb2.TableView) -> None:
    """The other has the pot: nobody ends with what he began with."""
    table_id, hand_id = view.config.table_id, view.hand.hand_id
    while view.hand.hand_id == hand_id:
        legal, player = view.hand.turn.legal, player_to_act(view)
        kind = game_pb2.ACTION_KIND_FOLD if legal.fold else game_pb2.ACTION_KIND_CHECK
        await at.act(view, player, game_pb2.Action(kind=kind))
        view = await at.turn(table_id)


async def settled(at: Client) -> dict[str, int]:
    """What the ledger has of each player once it has the hand; nothing before."""
    found = {}
    for player in PLAYERS:
        request = wallet_pb2.GetBalanceRequest(player_id=player)
        answer = await at.ask(at.wallet.GetBalance, request, at.bearer(player))
        (balance,) = answer.balances
        found[player] = balance.in_play
    # At first the ledger has not even what they brought.
    return found if all(amount not in (0, 200) for amount in found.values()) else {}


def appended(home: Path) -> Path:
    """The file of the tables' Redis."""
    (path,) = home.glob("valkey/**/*.incr.aof")
    return path


def kill(room: Command) -> None:
    """The whole room, at once."""
    room.interrupt(signal.SIGKILL)
    room.wait()
