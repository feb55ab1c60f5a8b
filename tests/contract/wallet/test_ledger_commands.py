"""`doorcard ledger`: what it prints and how it exits, against a wallet that serves."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from services.local.ledger import ledger_app
from tests.contract.wallet.conftest import TABLE, Outbox, Start, Wallet, two_seats
from tests.contract.wallet.test_rake_reports import hand


async def doorcard(
    wallet: Wallet, *arguments: str, roles: tuple[str, ...] = ("operator",), tables: str = ""
) -> tuple[int, str]:
    """Exit status and output of `doorcard ledger ARGUMENTS`, in a thread beside the server."""
    env = {
        "DOORCARD_WALLET_ADDRESS": wallet.address,
        "DOORCARD_TABLE_ADDRESSES": tables,
        "DOORCARD_TOKEN": wallet.room.token("olga", roles),
        "COLUMNS": "200",
    }
    # The server in this process logs to the same output.
    with capture_logs():
        result = await asyncio.to_thread(CliRunner(env=env).invoke, ledger_app, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


async def raked(wallet: Wallet) -> tuple[Outbox, str, str]:
    """anna and ben have played a raked hand, and everything is sealed."""
    outbox, anna, ben = await two_seats(wallet)
    hand(outbox, {anna: 30, ben: 30}, ben, 3, "2026-03-28T22:30:00")
    await wallet.apply(outbox.entries)
    outbox.entries.clear()
    await wallet.upkeep()
    return outbox, anna, ben


async def test_a_sound_ledger_verifies_with_status_0(start: Start) -> None:
    async with start() as wallet:
        await raked(wallet)
        status, text = await doorcard(wallet, "verify", "--json", roles=("auditor",))
        found = json.loads(text)
        assert (status, found["ok"], found["faults"]) == (0, True, [])
        assert found["rows"] > 10
        assert len(found["last_hash"]) == 64
        noted = f"{found['last_seal']}:{found['last_hash']}"
        status, text = await doorcard(wallet, "verify", "--known", noted)
        assert status == 0
        assert noted in text
        status, _ = await doorcard(wallet, "verify", "--known", f"{found['last_seal']}:{'0' * 64}")
        assert status == 1


async def test_a_changed_row_is_named_with_status_1(start: Start) -> None:
    async with start() as wallet:
        await raked(wallet)
        ((entry,),) = wallet.sql("SELECT id FROM journal WHERE kind = 5")
        wallet.sql(
            "SET session_replication_role = replica;"
            f" UPDATE transfers SET amount = 31 WHERE entry = {entry} AND line = 0;"
            f" DELETE FROM transfers WHERE entry = {entry} AND line = 2"
        )
        status, text = await doorcard(wallet, "verify", "--json")
        assert status == 1
        assert [(each["kind"], each["row"]) for each in json.loads(text)["faults"]] == [
            ("CHANGED", f"transfers {entry}.0"),
            ("MISSING", f"transfers {entry}.2"),
        ]
        status, text = await doorcard(wallet, "verify")
        assert status == 1
        assert f"CHANGED  transfers {entry}.0" in text


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("day", {"day": "2026-03-28", "hands": 1, "rake": 3}),
        ("stake", {"stake": "high 5/10", "hands": 1, "rake": 3}),
        ("table", {"table": TABLE, "hands": 1, "rake": 3}),
        ("player", {"player": "anna", "hands": 1, "rake": 3, "dealt": 1.5, "contributed": 1.5}),
    ],
)
async def test_rake_is_reported(start: Start, by: str, expected: dict[str, Any]) -> None:
    async with start() as wallet:
        await raked(wallet)
        status, text = await doorcard(wallet, "rake", "--by", by, "--currency", "EUR", "--json")
        assert status == 0
        assert json.loads(text)["lines"][0] == expected
        status, text = await doorcard(wallet, "rake", "--by", by, "--currency", "EUR")
        assert status == 0
        assert str(expected[by]) in text


async def test_parked_entries_are_listed_retried_and_resolved(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await raked(wallet)
        assert await doorcard(wallet, "parked", "list") == (0, "nothing is parked\n")
        bad = outbox.hand({anna: -500, ben: 500})
        outbox.hand({anna: -1, ben: 1})
        await wallet.apply(outbox.entries)
        status, text = await doorcard(wallet, "parked", "list", "--json")
        listed = json.loads(text)
        assert status == 1
        assert [each["reason"] for each in listed] == ["ESCROW_OVERDRAWN", "BEHIND_PARKED"]
        assert listed[0]["content"]["hand"]["nets"][0] == {"sitting_id": anna, "amount": "-500"}
        status, text = await doorcard(wallet, "parked", "list", "--table", TABLE)
        assert status == 1
        assert bad.entry_id in text
        status, text = await doorcard(wallet, "parked", "retry", TABLE)
        assert status == 1
        assert f"{bad.entry_id}: ESCROW_OVERDRAWN" in text
        status, text = await doorcard(wallet, "parked", "resolve", bad.entry_id)
        assert status == 2, "a reason is needed"
        status, text = await doorcard(
            wallet, "parked", "resolve", bad.entry_id, "--reason", "a bug of the table", "--json"
        )
        assert status == 0
        assert json.loads(text)[0]["resolved_by"] == "olga"
        status, text = await doorcard(wallet, "parked", "retry", TABLE, "--json")
        assert (status, len(json.loads(text)["applied"])) == (0, 1)
        assert (await doorcard(wallet, "parked", "list"))[0] == 0
        status, text = await doorcard(wallet, "parked", "list", "--all")
        assert status == 0
        assert "a bug of the table (olga)" in text


async def test_corrections_go_on_record(start: Start) -> None:
    async with start() as wallet:
        who = ("--player", "anna", "--currency", "EUR", "--reason", "goodwill")
        status, text = await doorcard(wallet, "adjust", "--amount", "30", *who)
        assert status == 0
        transfer = text.split()[1].rstrip(",")
        status, text = await doorcard(wallet, "reverse", transfer, "--reason", "too much")
        assert status == 0
        status, text = await doorcard(wallet, "transfer", transfer, "--json")
        assert status == 0
        assert json.loads(text)["reason"] == "goodwill"
        status, text = await doorcard(wallet, "transfer", transfer)
        assert status == 0
        assert text.startswith(f"transfer {transfer}: adjustment, ")
        assert "player anna" in text
        status, text = await doorcard(wallet, "adjust", "--amount", "5", *who, "--json")
        assert (status, json.loads(text)["balance"]) == (0, 5)
        status, text = await doorcard(
            wallet, "reverse", json.loads(text)["transfer"], "--reason", "again", "--json"
        )
        assert (status, list(json.loads(text))) == (0, ["transfer"])
        assert await wallet.balance("anna") == (0, 0, 0)


async def test_what_cannot_be_asked_or_is_refused_ends_with_status_2(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async with start() as wallet:
        for arguments, said in (
            (("parked", "retry", TABLE), "NOTHING_PARKED"),
            (("parked", "retry", "x"), "BAD_UUID"),
            (("transfer", "999"), "TRANSFER_UNKNOWN"),
            (("verify", "--known", "rubbish"), "--known"),
            (("rake", "--by", "day", "--from", "x"), "BAD_DAY"),
            (
                ("adjust", "--amount", "1", "--currency", "EUR", "--reason", "x"),
                "--player or --sitting",
            ),
        ):
            status, text = await doorcard(wallet, *arguments)
            assert status == 2, arguments
            assert said in text
        status, text = await doorcard(wallet, "verify", roles=("player",))
        assert (status, "ROLE_NOT_ALLOWED" in text) == (2, True)
    home = tmp_path / "home"
    monkeypatch.setenv("DOORCARD_HOME", str(home))
    result = CliRunner(env={"DOORCARD_WALLET_ADDRESS": "", "DOORCARD_TOKEN": ""}).invoke(
        ledger_app, ["verify"]
    )
    assert result.exit_code == 2
    assert "start a room here" in result.output
    assert not home.exists()
