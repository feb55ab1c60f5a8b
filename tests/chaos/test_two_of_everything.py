"""Two wallets on one ledger, two workers, two beats: nothing happens twice, whoever is first."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import grpc
import pytest
from doorcard.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from services.local.bots import bearer
from services.runtime.channels import call
from services.runtime.errors import DoorcardError
from services.runtime.ids import uuid7
from services.runtime.roles import Role
from tests.chaos.life import CURRENCY
from tests.chaos.rooms import FaultyRoom
from tests.chaos.scenes import Scene, scene_of
from tests.chaos.triggers import flood

pytestmark = [pytest.mark.deep, pytest.mark.timeout(240)]

TWINS: Final = ("wallet", "settlement-worker", "settlement-beat")
BUY_INS: Final = 100
CONNECTIONS: Final = 16
"""Each goes to either wallet: with so many, both have some."""
HANDS: Final = 3
FLUSHES: Final = 5
RELEASED_S: Final = 90.0
"""A reservation is old after 31 s and put to its table within the next rounds."""


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """One room for all of it."""
    with scene_of(twins=TWINS) as made:
        yield made


def test_visits_and_hands_add_up(scene: Scene) -> None:
    async def work() -> None:
        async with scene.case(1) as case:
            for _ in range(HANDS):
                async with case.going_on():
                    pass
        for name in TWINS:
            assert scene.room.pid(name) != scene.room.pid(f"{name}-2") != 0

    scene.host.run(work())


@pytest.mark.parametrize("name", TWINS)
def test_one_of_two_killed_is_not_missed(scene: Scene, name: str) -> None:
    async def work() -> None:
        async with scene.case(10 + TWINS.index(name)) as case, case.going_on():
            await scene.room.kill(name)

    scene.host.run(work())


def test_triggers_many_times_and_in_any_order(scene: Scene) -> None:
    async def work() -> None:
        async with scene.case(3) as case, case.going_on():
            await asyncio.to_thread(flood, scene.room, random.Random(3))

    scene.host.run(work())


def test_the_broker_emptied(scene: Scene) -> None:
    async def work() -> None:
        async with scene.case(4) as case, case.going_on():
            for _ in range(FLUSHES):
                await scene.room.flush("broker")
                await asyncio.sleep(0.3)

    scene.host.run(work())


def test_of_100_buy_ins_of_80_from_100_one_succeeds_at_two_wallets(scene: Scene) -> None:
    async def work() -> None:
        async with scene.case(5, timeout_s=200.0) as case:
            player = f"rich-{case.life.new_id()}"
            await case.life.deposit(player, 100)
            before = [reserved(scene.room, name) for name in ("wallet", "wallet-2")]
            async with wallets(scene.room) as ways:
                outcomes = Counter(
                    await asyncio.gather(
                        *(reserve(scene.room, ways[n % len(ways)], player) for n in range(BUY_INS))
                    )
                )
            assert outcomes == {"PENDING": 1, "INSUFFICIENT_FUNDS": BUY_INS - 1}
            after = [reserved(scene.room, name) for name in ("wallet", "wallet-2")]
            assert all(there > here for here, there in zip(before, after, strict=True)), after
            balance = await case.life.balance(player)
            assert (balance.available, balance.pending) == (20, 80)
            # Its table never was: the reconciler finds that, and the player has it back.
            await case.proof.nothing_pending(RELEASED_S)
            assert (await case.life.balance(player)).available == 100

    scene.host.run(work())


@asynccontextmanager
async def wallets(
    room: FaultyRoom,
) -> AsyncIterator[list["wallet_pb2_grpc.WalletServiceAsyncStub"]]:
    """Connections of their own to the wallets' one address."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(
                grpc.aio.insecure_channel(room.address("wallet"), options)
            )
            for _ in range(CONNECTIONS)
        ]
        yield [wallet_pb2_grpc.WalletServiceStub(each) for each in channels]


async def reserve(
    room: FaultyRoom, wallet: "wallet_pb2_grpc.WalletServiceAsyncStub", player: str
) -> str:
    """What came of a buy-in of 80."""
    request = wallet_pb2.ReserveBuyInRequest(
        reservation_id=uuid7(),
        player_id=player,
        table_id=uuid7(),
        sitting_id=uuid7(),
        amount=80,
        currency=CURRENCY,
    )
    token = room.signer.mint("table", [Role.SERVICE], 600)
    try:
        answer = await call(
            wallet.ReserveBuyIn, request, timeout_s=10.0, attempts=20, metadata=bearer(token)
        )
    except DoorcardError as error:
        return error.reason
    return wallet_pb2.ReservationState.Name(answer.reservation.state).rpartition("_")[2]


def reserved(room: FaultyRoom, name: str) -> float:
    """Buy-ins that a wallet answered, in whatever way."""
    return sum(
        sample.value
        for family in text_string_to_metric_families(room.metrics(name))
        for sample in family.samples
        if sample.name == "grpc_server_handled_total"
        and sample.labels["grpc_method"] == "ReserveBuyIn"
    )
