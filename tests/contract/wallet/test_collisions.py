"""Transactions that collide are tried again, with an end to it."""

import asyncio

import pytest

from services.runtime.errors import Unavailable
from services.runtime.postgres import ATTEMPTS
from tests.contract.wallet.conftest import Start, Wallet, two_seats


def collide(wallet: Wallet, times: int, code: str, table: str = "transfers") -> None:
    """The next `times` statements that put rows into the table fail as if another transaction had
    been in the way. A sequence counts them, since it outlives the roll-back.
    """
    wallet.sql(
        "DROP TRIGGER IF EXISTS collide ON transfers; DROP SEQUENCE IF EXISTS collisions CASCADE;"
        "CREATE SEQUENCE collisions;"
        "CREATE OR REPLACE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF nextval('collisions') <= {times} THEN"
        f"  RAISE EXCEPTION 'collision' USING ERRCODE = '{code}'; END IF;"
        " RETURN NULL; END $$;"
        f"CREATE TRIGGER collide AFTER INSERT ON {table}"
        " FOR EACH STATEMENT EXECUTE FUNCTION collide()"
    )


@pytest.mark.parametrize("code", ["serialization_failure", "deadlock_detected"])
async def test_a_collision_is_tried_again_and_has_its_effect_once(start: Start, code: str) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        collide(wallet, ATTEMPTS - 1, code)
        await wallet.deposit("carl", 10)
        collide(wallet, ATTEMPTS - 1, code)
        answer = await wallet.apply([outbox.hand({anna: -1, ben: 1})])
        assert not answer.parked
        assert await wallet.balance("carl") == (10, 0, 0)
        assert await wallet.escrow() == {anna: 99, ben: 101}
        await wallet.sound()


async def test_collisions_without_end_are_a_retriable_error_and_write_nothing(
    start: Start,
) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        hand = outbox.hand({anna: -1, ben: 1})
        collide(wallet, 10**6, "serialization_failure")
        for call in (wallet.deposit("carl", 10, request_id="d1"), wallet.apply([hand])):
            with pytest.raises(Unavailable) as caught:
                await call
            assert caught.value.reason == "DATABASE_BUSY"
            assert caught.value.retry_after_ms
        assert wallet.sql("SELECT last_value FROM collisions") == [(2 * ATTEMPTS,)]
        collide(wallet, 0, "serialization_failure")
        assert (await wallet.deposit("carl", 10, request_id="d1")).balance == 10
        assert not (await wallet.apply([hand])).parked
        await wallet.sound()


async def test_corrections_deposits_and_settlement_at_once_never_deadlock(start: Start) -> None:
    async with start() as one, start() as two:
        outbox, anna, ben = await two_seats(one, 1000)
        players = ("anna", "ben", "carl")
        for player in players:
            await one.deposit(player, 1000)
        for _ in range(5):
            outbox.entries.clear()
            for _ in range(10):
                outbox.hand({anna: -2, ben: 1}, rake=1)
            calls = [
                call
                for wallet in (one, two)
                for player in players
                for call in (
                    wallet.deposit(player, 3),
                    wallet.withdraw(player, 2),
                    wallet.adjust(-1, player_id=player),
                )
            ]
            calls.append(two.adjust(1, sitting_id=ben))
            await asyncio.gather(one.apply(outbox.entries), *calls)
        found = await one.sound()
        assert found.escrow == 2000 - 50 + 5
        assert found.rake == 50
