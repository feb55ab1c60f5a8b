"""Keys are made once, hold for each other, and nobody else may read them."""

import json
import stat
from pathlib import Path

from services.local.keys import RoomKeys
from services.runtime.auth import KeyFileVerifier
from services.runtime.roles import Role
from services.runtime.sealing import SealKeys
from services.shuffler.receipts import ReceiptKeys


def test_servers_believe_tokens_of_the_room_also_after_a_restart(tmp_path: Path) -> None:
    token = RoomKeys(tmp_path).signer.mint("anna", ["player"], 60)
    again = RoomKeys(tmp_path)
    assert KeyFileVerifier(again.auth_keys_file).verify(token).subject == "anna"


def test_who_only_uses_the_keys_writes_nothing(tmp_path: Path) -> None:
    RoomKeys(tmp_path)
    before = {each.name: each.stat() for each in tmp_path.iterdir()}
    RoomKeys(tmp_path).signer.mint("anna", ["player"], 60)
    after = {each.name: each.stat() for each in tmp_path.iterdir()}
    assert {name: (each.st_ino, each.st_mtime_ns) for name, each in before.items()} == {
        name: (each.st_ino, each.st_mtime_ns) for name, each in after.items()
    }


def test_services_get_tokens_of_their_own(tmp_path: Path) -> None:
    room = RoomKeys(tmp_path)
    room.mint_tokens(["table", "wallet"])
    caller = KeyFileVerifier(room.auth_keys_file).verify(room.token_file("wallet").read_text())
    assert (caller.subject, caller.roles) == ("wallet", frozenset({Role.SERVICE}))


def test_seal_keys_outlive_a_restart_and_differ_by_service(tmp_path: Path) -> None:
    sealed = SealKeys.load(RoomKeys(tmp_path).seal_keys_file("table")).seal(
        b"stack", table="t", purpose="blob", version=1
    )
    again = RoomKeys(tmp_path)
    table = SealKeys.load(again.seal_keys_file("table"))
    assert table.open(sealed, table="t", purpose="blob", version=1) == b"stack"
    assert table.room == "local"
    shuffler = SealKeys.load(again.seal_keys_file("shuffler"))
    assert shuffler.subkey("t") != table.subkey("t")


def test_receipt_keys_and_passwords_stay(tmp_path: Path) -> None:
    first, again = RoomKeys(tmp_path), RoomKeys(tmp_path)
    receipts = ReceiptKeys.load(first.receipt_keys_file()).public_keys()
    assert ReceiptKeys.load(again.receipt_keys_file()).public_keys() == receipts
    assert first.password("wallet") == again.password("wallet") != first.password("history")
    assert first.password("wallet").isalnum()


def test_nobody_else_may_read_them(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    room = RoomKeys(folder)
    room.seal_keys_file("table")
    room.receipt_keys_file()
    room.password("wallet")
    room.mint_tokens(["table"])
    paths = [folder, *folder.rglob("*")]
    assert len(paths) > 7
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in paths} == {0}


def test_the_public_key_file_holds_no_private_key(tmp_path: Path) -> None:
    content = json.loads(RoomKeys(tmp_path).auth_keys_file.read_text())
    assert all("PRIVATE" not in pem for pem in content.values())
