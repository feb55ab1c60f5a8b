"""kill -9 of a wallet in the middle of its work: every request has its effect once."""

import asyncio
import contextlib
import random
from uuid import uuid4

from doorcard.wallet.v1 import wallet_pb2_grpc
from grpc import aio

from services.runtime.errors import DoorcardError
from tests.conftest import Room
from tests.contract.wallet.conftest import SHARDS, Outbox, Start, Wallet, seat
from tests.processes import ServiceProcess

KILLS = 4


async def test_a_wallet_killed_in_mid_batch_loses_and_doubles_nothing(
    room: Room, start: Start, ledger_url: str
) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    dice = random.Random(seed)
    async with start() as survivor:
        outbox = Outbox()
        await survivor.open_epoch()
        anna, ben = [await seat(survivor, outbox, player, 1000) for player in ("anna", "ben")]
        await survivor.apply(outbox.entries)
        deposits: list[str] = []
        for _ in range(KILLS):
            for _ in range(100):
                outbox.hand({anna: -1, ben: 1})
            deposits += [str(uuid4()) for _ in range(20)]
            victim = ServiceProcess(
                room, "wallet", WALLET_DATABASE_URL=ledger_url, SHARDS=str(SHARDS)
            )
            try:
                address = f"127.0.0.1:{victim.ready().grpc}"
                async with aio.insecure_channel(address) as channel:
                    stub = wallet_pb2_grpc.WalletServiceStub(channel)
                    work = asyncio.gather(
                        apply_all(Wallet(room, stub, ledger_url), outbox),
                        deposit_all(Wallet(room, stub, ledger_url), deposits),
                    )
                    await asyncio.wait({work}, timeout=dice.uniform(0.0, 0.15))
                    victim.kill()
                    await work
            finally:
                victim.kill()
        await survivor.apply(outbox.entries)
        for request_id in deposits:
            await survivor.deposit("carl", 10, request_id=request_id)
        hands = KILLS * 100
        assert await survivor.escrow() == {anna: 1000 - hands, ben: 1000 + hands}
        assert await survivor.balance("carl") == (10 * len(deposits), 0, 0)
        await survivor.sound()


async def apply_all(wallet: Wallet, outbox: Outbox) -> None:
    with contextlib.suppress(DoorcardError):
        for at in range(0, len(outbox.entries), 10):
            await wallet.apply(outbox.entries[: at + 10])


async def deposit_all(wallet: Wallet, request_ids: list[str]) -> None:
    with contextlib.suppress(DoorcardError):
        for request_id in request_ids:
            await wallet.deposit("carl", 10, request_id=request_id)


async def test_it_starts_without_its_database_and_ends_with_0_at_sigterm(room: Room) -> None:
    process = ServiceProcess(
        room, "wallet", WALLET_DATABASE_URL="postgresql://postgres@127.0.0.1:1/wallet"
    )
    try:
        process.ready()
        assert process.terminate() == 0
    finally:
        process.kill()
