"""Chips and escrow that part: the table is paused, and goes on when an operator has settled it."""

import asyncio
import json
import os
from collections.abc import Iterator
from uuid import uuid4

import pytest
from doorcard.table.v1 import table_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.local.room import Room
from services.runtime.settings import ENV_PREFIX
from services.runtime.shards import shard_of
from tests.integration.rooms import BIN, Client, Hosted, Places, client, new_home

QUICK = {"RECONCILE_EVERY_SECONDS": "1", "CONFIRM_SECONDS": "0.2"}


@pytest.fixture(scope="module")
def hosted() -> Iterator[tuple[Hosted, Room]]:
    """A room that is compared every second."""
    with new_home() as home:
        host = Hosted(home)
        try:
            yield host, host.start(extra_env=QUICK)
        finally:
            host.close()


async def doorcard(places: Places, *arguments: str) -> tuple[int, str]:
    """Exit status and output of `doorcard ledger ARGUMENTS` as a process."""
    plain = {key: value for key, value in os.environ.items() if not key.startswith(ENV_PREFIX)}
    process = await asyncio.create_subprocess_exec(
        str(BIN / "doorcard"),
        "ledger",
        *arguments,
        env={**plain, "DOORCARD_HOME": str(places.home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def adjust(room: Client, sitting_id: str, amount: int) -> None:
    request = wallet_pb2.AdjustBalanceRequest(
        request_id=str(uuid4()),
        sitting_id=sitting_id,
        amount=amount,
        currency="XTS",
        reason="made to differ",
    )
    await room.ask(room.wallet.AdjustBalance, request, room.operator)


async def part_and_settle(places: Places) -> None:
    async with client(places) as room:
        table_id, other_id = await room.create_table(), await room.create_table(name="Other")
        await room.sit_down(table_id, ("anna", "ben"))
        await room.sit_down(other_id, ("carl", "dora"))
        settings = wallet_pb2.GetRoomSettingsRequest()
        shards = (await room.ask(room.wallet.GetRoomSettings, settings, room.operator)).shards
        inspect = wallet_pb2.InspectEscrowRequest(shard=shard_of(table_id, shards))

        async def sitting() -> str:
            found = await room.ask(room.wallet.InspectEscrow, inspect, room.operator)
            of_ben = [each for each in found.escrow if each.player_id == "ben"]
            return of_ben[0].sitting_id if of_ben else ""

        async with asyncio.timeout(30):
            while not (ben := await sitting()):
                await asyncio.sleep(0.05)
        assert (await doorcard(places, "reconcile"))[0] == 0

        await adjust(room, ben, -5)
        paused = table_pb2.TABLE_STATE_PAUSED
        await room.until(table_id, lambda view: view.state == paused)
        assert (await room.view(other_id)).state != paused
        status, text = await doorcard(places, "reconcile", "--json")
        assert status == 1, text
        assert json.loads(text)["differences"] == [
            {"table_id": table_id, "currency": "XTS", "sitting_id": ben, "amount": 5}
        ]
        resolve = ("resolve", "--table", table_id, "--reason", "given back by the house")
        status, text = await doorcard(places, *resolve)
        assert (status, f"--sitting {ben} --amount 5 --currency XTS" in text) == (1, True), text
        assert (await room.view(table_id)).state == paused

        give_back = ("adjust", "--sitting", ben, "--amount", "5", "--currency", "XTS")
        status, text = await doorcard(places, *give_back, "--reason", "given back")
        assert status == 0, text
        status, text = await doorcard(places, *resolve, "--operator", "olga")
        assert status == 0, text
        await room.turn(table_id)
        request = wallet_pb2.GetTransferRequest(transfer_id=text.split()[3])
        record = await room.ask(room.wallet.GetTransfer, request, room.operator)
        assert record.kind == wallet_pb2.TRANSFER_KIND_RESOLUTION
        assert (record.made_by, record.reason) == ("olga", "given back by the house")
        assert (await doorcard(places, "reconcile", "--table", table_id))[0] == 0


@pytest.mark.deep
def test_it_is_paused_told_and_resumed_with_a_record(hosted: tuple[Hosted, Room]) -> None:
    host, _ = hosted
    host.run(part_and_settle(Places.of(host.home)))
