"""Everything that the tables' Redis holds is gone: the players have their money back."""

import asyncio

import pytest

from tests.chaos.life import BUY_IN, DEPOSIT
from tests.chaos.scenes import scene_of

pytestmark = [pytest.mark.deep, pytest.mark.timeout(240)]

LOOK_S = 0.1


@pytest.mark.parametrize("settled", [True, False])
def test_the_money_comes_back(settled: bool) -> None:
    """settled: the ledger has heard of the seat; otherwise it only has a reservation."""
    with scene_of() as scene:

        async def work() -> None:
            async with scene.case(int(settled)) as case:
                life = case.life
                async with case.going_on():
                    pass
                player = f"guest-{life.new_id()}"
                await life.deposit(player, DEPOSIT)
                if not settled:
                    scene.room.lines.cut("settlement-worker", "table")
                await life.take_seat(case.guests_at, player, BUY_IN)
                while settled and (await life.balance(player)).in_play != BUY_IN:
                    await asyncio.sleep(LOOK_S)
                await scene.room.flush("valkey")
                scene.room.lines.mend_all()
                while (await life.balance(player)).available != DEPOSIT:
                    await asyncio.sleep(LOOK_S)
                await life.withdraw(player, DEPOSIT)
                scene.tables = []
            # New tables, where all goes on.
            async with scene.case(2) as case, case.going_on():
                pass

        scene.host.run(work())
