"""A hash chain over what was written: whatever is changed afterwards is found, and named."""

import asyncio
import random
import re
from typing import Any

import psycopg
import pytest
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.errors import InvalidArgument, PermissionDenied
from services.wallet import upkeep
from services.wallet.ledger import audit, seals, totals, verify
from tests.contract.wallet.conftest import Outbox, Start, Wallet, refused, seat, two_seats

CHANGED, MISSING, ADDED, REORDERED, SEAL, BALANCE = (
    pb.FAULT_KIND_CHANGED,
    pb.FAULT_KIND_MISSING,
    pb.FAULT_KIND_ADDED,
    pb.FAULT_KIND_REORDERED,
    pb.FAULT_KIND_SEAL,
    pb.FAULT_KIND_BALANCE,
)


async def three_seals(wallet: Wallet) -> int:
    """Deposits, then a raked hand, then a correction, each under a seal of its own; number of the
    hand's entry.
    """
    await wallet.deposit("carl", 100)
    outbox, anna, ben = await two_seats(wallet)
    await wallet.upkeep()
    await wallet.apply([outbox.hand({anna: -30, ben: 28}, rake=2)])
    await wallet.upkeep()
    await wallet.adjust(5, "goodwill", player_id="carl")
    await wallet.upkeep()
    assert wallet.sql("SELECT count(*) FROM seals") == [(3,)]
    return int(wallet.sql("SELECT id FROM journal WHERE kind = 5")[0][0])


def tamper(wallet: Wallet, *statements: str) -> None:
    """As one who may do everything in the database."""
    wallet.sql("; ".join(("SET session_replication_role = replica", *statements)))


async def test_a_sound_ledger_has_no_faults_and_every_row_is_sealed(start: Start) -> None:
    async with start() as wallet:
        assert await wallet.faults() == []
        await three_seals(wallet)
        pages = await wallet.verify()
        assert [fault for page in pages for fault in page.faults] == []
        rows = sum(
            wallet.sql(f"SELECT count(*) FROM {table}")[0][0]
            for table in ("accounts", "journal", "transfers")
        )
        assert sum(page.rows for page in pages) == rows
        assert sum(page.seals for page in pages) == 3
        accounts = wallet.sql("SELECT count(*) FROM accounts")[0][0]
        assert sum(page.accounts for page in pages) == accounts
        assert pages[0].unsealed == 0
        await wallet.deposit("carl", 1)
        assert (await wallet.verify())[0].unsealed == 1


async def test_a_ledger_at_rest_waits_for_no_seal_whatever_numbers_were_drawn(
    start: Start,
) -> None:
    async with start() as wallet:
        await wallet.deposit("carl", 1)
        await wallet.upkeep(rounds=1)
        assert upkeep.UNSEALED._value.get() == 1
        wallet.sql("SELECT nextval('journal_id_seq')")
        await wallet.upkeep(rounds=3)
        assert upkeep.UNSEALED._value.get() == 0


@pytest.mark.parametrize("query", [totals._FROM_SUMS, audit._STRETCH], ids=["sums", "audit"])
async def test_of_a_long_ledger_only_a_small_part_is_expected_to_be_unsealed(
    start: Start, query: str
) -> None:
    async with start() as wallet:
        await wallet.deposit("carl", 1)
        wallet.sql(
            "INSERT INTO transfers (entry, line, debit, credit, amount, kind)"
            " SELECT 1000 + n, 0, 1, 2, 1, 5 FROM generate_series(1, 50000) n"
        )
        with psycopg.connect(wallet.url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE transfers")
            arguments = {"currency": "EUR", "after": 0, "limit": 10}
            plan = connection.execute(f"EXPLAIN {query}".encode(), arguments).fetchall()
        scans = [line for (line,) in plan if " on transfers" in line]
        expected = [int(re.findall(r"rows=(\d+)", line)[0]) for line in scans]
        # Of 50,000; with a third of them it may choose to read everything.
        assert len(expected) == 2
        assert max(expected) < 500


TAMPERED: dict[str, tuple[list[str], list[tuple[int, str]]]] = {
    "an amount": (
        ["UPDATE transfers SET amount = 31 WHERE entry = {e} AND line = 0"],
        [(CHANGED, "transfers {e}.0")],
    ),
    "a payee": (
        ["UPDATE transfers SET credit = debit, debit = credit WHERE entry = {e} AND line = 1"],
        [(CHANGED, "transfers {e}.1")],
    ),
    "a balance on a statement": (
        ["UPDATE transfers SET balance = 1 WHERE entry = 1"],
        [(CHANGED, "transfers 1.0")],
    ),
    "a time": (
        ["UPDATE journal SET at = at + interval '1 microsecond' WHERE id = {e}"],
        [(CHANGED, "journal {e}")],
    ),
    "an operator's name": (
        ["UPDATE journal SET made_by = 'oscar' WHERE reason = 'goodwill' AND id = {last}"],
        [(CHANGED, "journal {last}")],
    ),
    "an owner": (
        ["UPDATE accounts SET owner = 'mallory' WHERE owner = 'carl'"],
        [(CHANGED, "accounts {carl}")],
    ),
    "a transfer that is gone": (
        ["DELETE FROM transfers WHERE entry = {e} AND line = 1"],
        [(MISSING, "transfers {e}.1")],
    ),
    "an entry that is gone": (
        ["DELETE FROM journal WHERE id = {e}", "DELETE FROM transfers WHERE entry = {e}"],
        [
            (MISSING, "journal {e}"),
            (MISSING, "transfers {e}.0"),
            (MISSING, "transfers {e}.1"),
            (MISSING, "transfers {e}.2"),
        ],
    ),
    "a transfer that was put in": (
        [
            "INSERT INTO transfers (entry, line, debit, credit, amount, kind)"
            " VALUES ({e}, 9, 1, 2, 5, 5)"
        ],
        [(ADDED, "transfers {e}.9")],
    ),
    "an entry before all others": (
        ["INSERT INTO journal (id, kind, source) VALUES (-7, 1, 'x')"],
        [(ADDED, "journal -7")],
    ),
    "two transfers that changed places": (
        [
            "UPDATE transfers SET line = 99 WHERE entry = {e} AND line = 0",
            "UPDATE transfers SET line = 0 WHERE entry = {e} AND line = 2",
            "UPDATE transfers SET line = 2 WHERE entry = {e} AND line = 99",
        ],
        [(REORDERED, "transfers {e}.0"), (REORDERED, "transfers {e}.2")],
    ),
    "a transfer that was moved": (
        ["UPDATE transfers SET line = 7 WHERE entry = {e} AND line = 1"],
        [(MISSING, "transfers {e}.1"), (REORDERED, "transfers {e}.7")],
    ),
    "a seal that is gone": (
        ["DELETE FROM seals WHERE number = 2"],
        [(SEAL, "seals 2"), (SEAL, "seals 3")],
    ),
    "the first seal gone": (
        ["DELETE FROM seals WHERE number = 1"],
        [(SEAL, "seals 1")],
    ),
    "a hash": (
        ["UPDATE seals SET hash = sha256('x') WHERE number = 2"],
        [(SEAL, "seals 2"), (SEAL, "seals 3")],
    ),
    "the digests of a seal": (
        [
            "UPDATE seals SET contents = overlay(contents placing '\\x00'::bytea from 13)"
            " WHERE number = 2"
        ],
        [(CHANGED, "accounts {control}")],
    ),
    "a balance": (
        ["UPDATE accounts SET balance = balance + 1 WHERE id = {carl}"],
        [(BALANCE, "accounts {carl}")],
    ),
}


@pytest.mark.parametrize("case", TAMPERED)
async def test_what_was_tampered_with_is_named(start: Start, case: str) -> None:
    statements, expected = TAMPERED[case]
    async with start() as wallet:
        entry = await three_seals(wallet)
        ((last,),) = wallet.sql("SELECT max(id) FROM journal")
        ((carl,),) = wallet.sql("SELECT id FROM accounts WHERE owner = 'carl'")
        ((control,),) = wallet.sql("SELECT id FROM accounts WHERE purpose = 'control'")
        places: dict[str, Any] = {"e": entry, "last": last, "carl": carl, "control": control}
        tamper(wallet, *(each.format(**places) for each in statements))
        found = await wallet.faults()
        assert found == [(kind, row.format(**places)) for kind, row in expected]


async def test_a_chain_made_anew_is_told_from_one_that_was_noted_elsewhere(start: Start) -> None:
    async with start() as wallet:
        entry = await three_seals(wallet)
        noted = (await wallet.verify())[0]
        known = {"known_seal": noted.last_seal, "known_hash": noted.last_hash}
        assert await wallet.faults(**known) == []
        tamper(
            wallet,
            f"UPDATE journal SET reference = 'forged' WHERE id = {entry}",
            "DELETE FROM seals",
            "DELETE FROM sealed_balances",
            "DELETE FROM sealed_sums",
        )
        assert await wallet.faults(**known) == [(SEAL, "seals 3")]
        for number in range(3):
            await wallet.deposit("carl", number + 1)
            await wallet.upkeep()
        assert await wallet.faults() == []
        assert await wallet.faults(**known) == [(SEAL, "seals 3")]


async def test_pages_go_on_where_the_last_one_ended(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "ENTRIES_MAX", 3)
    monkeypatch.setattr(verify, "SEALS_MAX", 2)
    monkeypatch.setattr(audit, "ACCOUNTS_MAX", 4)
    async with start() as wallet:
        for number in range(20):
            await wallet.deposit(f"player-{number}", 10)
        await wallet.upkeep(rounds=3)
        pages = await wallet.verify()
        assert [page.faults for page in pages if page.faults] == []
        assert sum(page.seals for page in pages) == 7
        assert [page.seals for page in pages if page.seals] == [2, 2, 2, 1]
        assert len([page for page in pages if page.accounts]) > 5
        tamper(wallet, "UPDATE transfers SET amount = 11 WHERE entry IN (2, 19)")
        assert [row for _, row in await wallet.faults()] == ["transfers 2.0", "transfers 19.0"]


async def test_two_wallets_that_seal_while_money_moves_seal_every_row_once(start: Start) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    dice = random.Random(seed)
    fast = {"wallet_seal_every_seconds": 0.01}
    async with start(**fast) as one, start(**fast) as two:
        outbox = Outbox()
        await one.open_epoch()
        anna, ben = [await seat(one, outbox, player, 1000) for player in ("anna", "ben")]
        for _ in range(8):
            for _ in range(5):
                outbox.hand({anna: -2, ben: 1}, rake=1)
            work = [wallet.deposit(f"player-{dice.randrange(100)}", 1) for wallet in (one, two) * 6]
            await asyncio.gather(*work, one.apply(outbox.entries))
        await one.upkeep(rounds=3)
        pages = await one.verify()
        assert [fault for page in pages for fault in page.faults] == []
        assert pages[0].unsealed == 0
        rows = sum(
            one.sql(f"SELECT count(*) FROM {table}")[0][0]
            for table in ("accounts", "journal", "transfers")
        )
        assert sum(page.rows for page in pages) == rows
        await one.sound()


async def test_nothing_is_sealed_past_a_transaction_that_still_runs(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 1)
        await wallet.upkeep()
        with psycopg.connect(wallet.url) as slow:
            slow.execute("SELECT pg_current_xact_id()")
            slow.execute("INSERT INTO journal (kind, source) VALUES (1, 'slow')")
            await wallet.deposit("anna", 1)
            await wallet.upkeep(rounds=4)
            assert (await wallet.verify())[0].unsealed == 1
        await wallet.upkeep(rounds=2)
        assert (await wallet.verify())[0].unsealed == 0
        assert await wallet.faults() == []


async def test_sums_are_the_same_whatever_part_is_sealed(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        await wallet.sound()
        for number in range(6):
            await wallet.apply([outbox.hand({anna: -2, ben: 1}, rake=1)])
            await wallet.deposit("carl", number + 1, "EUR" if number % 2 else "XTS")
            await wallet.adjust(number - 9, sitting_id=ben)
            if number:
                await wallet.reserve("carl", 1, f"carl-{number}")
            if number % 2:
                await wallet.upkeep(rounds=1 + number % 3)
            for currency in ("EUR", "XTS", "USD"):
                await wallet.sound(currency)
        assert (await wallet.totals()).rake == 6


async def test_who_may_verify_and_what_is_malformed(start: Start) -> None:
    async with start() as wallet:
        for role in ("player", "service", "cashier"):
            with pytest.raises(PermissionDenied):
                await wallet.call("VerifyLedger", pb.VerifyLedgerRequest(), "someone", [role])
        for fields, reason in (
            ({"page_token": "x"}, "BAD_PAGE"),
            ({"page_token": "s.1.00"}, "BAD_PAGE"),
            ({"known_seal": 1}, "BAD_SEAL"),
            ({"known_hash": bytes(32)}, "BAD_SEAL"),
            ({"known_seal": -1, "known_hash": bytes(32)}, "BAD_SEAL"),
        ):
            request = pb.VerifyLedgerRequest(**fields)
            call = wallet.call("VerifyLedger", request, "audrey", ["auditor"])
            await refused(call, InvalidArgument, reason)
