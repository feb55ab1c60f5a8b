"""Nobody rewrites the ledger; who manages to is found out."""

import psycopg
import pytest

from tests.contract.wallet.conftest import Outbox, Start, Wallet, seat


async def some_history(wallet: Wallet) -> None:
    """A deposit, a reservation, two seats, a raked hand, a parked entry."""
    outbox = Outbox()
    await wallet.open_epoch()
    anna, ben = [await seat(wallet, outbox, player, 100) for player in ("anna", "ben")]
    await wallet.deposit("carl", 100)
    await wallet.reserve("carl", 40, "carl-1")
    outbox.hand({anna: -10, ben: 9}, rake=1)
    outbox.hand({anna: -1}, rake=2)
    await wallet.apply(outbox.entries)
    await wallet.sound()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE transfers SET amount = amount + 1",
        "DELETE FROM transfers",
        "TRUNCATE transfers",
        "UPDATE journal SET reference = 'x'",
        "DELETE FROM journal",
        "TRUNCATE journal",
        "UPDATE requests SET balance = 0",
        "DELETE FROM requests",
        "DELETE FROM accounts",
        "UPDATE accounts SET owner = 'ben' WHERE owner = 'anna'",
        "UPDATE accounts SET currency = 'USD'",
        "DELETE FROM reservations",
        "UPDATE reservations SET amount = 1",
        "UPDATE reservations SET state = 1, ended_by = NULL WHERE state = 2",
        "UPDATE progress SET applied_seq = 1",
        "DELETE FROM progress",
        "UPDATE epochs SET ended_seq = 5",
        "UPDATE room SET shards = 9",
        "DELETE FROM parked",
        "UPDATE parked SET content = ''",
        "UPDATE seals SET rows = rows + 1",
        "DELETE FROM seals",
        "TRUNCATE seals",
        "UPDATE hands SET rake = 0",
        "DELETE FROM hands",
        "UPDATE tables SET currency = 'USD'",
        "UPDATE accounts SET balance = -1 WHERE purpose = 'player'",
        "UPDATE accounts SET balance = -1 WHERE purpose = 'escrow'",
        "UPDATE accounts SET pending = balance + 1 WHERE purpose = 'player'",
        "UPDATE accounts SET balance = 1 WHERE purpose = 'control'",
        "UPDATE accounts SET closed = true WHERE purpose = 'escrow'",
    ],
)
async def test_the_database_itself_refuses(start: Start, statement: str) -> None:
    async with start() as wallet:
        await some_history(wallet)
        await wallet.upkeep()
        with pytest.raises(psycopg.IntegrityError):
            wallet.sql(statement)
        await wallet.sound()


@pytest.mark.parametrize(
    ("statement", "difference"),
    [
        ("UPDATE accounts SET balance = balance + 7 WHERE owner = 'carl'", 7),
        ("UPDATE accounts SET balance = balance - 7 WHERE owner = 'carl'", 7),
        ("UPDATE accounts SET pending = pending - 3 WHERE owner = 'carl'", 3),
        ("UPDATE transfers SET amount = amount + 7 WHERE kind = 6", 14),
        ("DELETE FROM transfers WHERE kind = 6", 2),
        ("UPDATE transfers SET credit = 9999 WHERE kind = 6", 2),
    ],
)
async def test_a_rewritten_ledger_shows_a_difference(
    start: Start, statement: str, difference: int
) -> None:
    async with start() as wallet:
        await some_history(wallet)
        wallet.sql(f"SET session_replication_role = replica; {statement}")
        assert (await wallet.totals(recount=True)).balance_difference == difference
        await wallet.upkeep()
        assert (await wallet.totals()).balance_difference == difference


async def test_a_difference_that_was_put_right_is_forgotten(start: Start) -> None:
    async with start() as wallet:
        await some_history(wallet)
        for change, difference in ((7, 7), (-4, 3), (-3, 0)):
            wallet.sql(f"UPDATE accounts SET balance = balance + {change} WHERE owner = 'carl'")
            await wallet.upkeep()
            assert (await wallet.totals()).balance_difference == difference
