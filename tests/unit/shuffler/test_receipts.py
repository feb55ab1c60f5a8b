"""Receipts say what was done, name no card, and are signed."""

import json
from pathlib import Path

import pytest

from services.shuffler.receipts import (
    HandContext,
    ReceiptKeys,
    deck_statement,
    draw_statement,
    reshuffle_statement,
)
from services.shuffler.verify import verify_receipt

HAND = HandContext("t1", "h1")
ROOT = bytes(range(32))


def test_a_deck_statement_has_one_canonical_form() -> None:
    assert deck_statement(HAND, ROOT, source="kernel", size=52, at_ms=1_700_000_000_123) == (
        b'{"hand_id":"h1","root":"' + ROOT.hex().encode() + b'","size":52,"source":"kernel",'
        b'"statement":"deck","table_id":"t1","time_ms":1700000000123,"version":1}'
    )


def test_a_draw_statement_names_positions_in_the_order_asked_for() -> None:
    content = json.loads(draw_statement(HAND, ROOT, [5, 1, 3], at_ms=1))
    assert content["positions"] == [5, 1, 3]
    assert content["root"] == ROOT.hex()


def test_a_reshuffle_statement_joins_both_roots() -> None:
    content = json.loads(
        reshuffle_statement(HAND, ROOT, old_root=bytes(32), positions=[5, 1], at_ms=1)
    )
    assert (content["root"], content["old_root"]) == (ROOT.hex(), "00" * 32)
    assert content["positions"] == [1, 5]


def test_a_receipt_verifies_under_its_own_key_only() -> None:
    keys, others = ReceiptKeys.generate("r1"), ReceiptKeys.generate("r1")
    receipt = keys.sign(b"statement")
    [(key_id, public)] = keys.public_keys()
    assert receipt.key_id == key_id == "r1"
    assert verify_receipt(public_key=public, statement=b"statement", signature=receipt.signature)
    assert not verify_receipt(
        public_key=public, statement=b"statemenT", signature=receipt.signature
    )
    [(_, other)] = others.public_keys()
    assert not verify_receipt(public_key=other, statement=b"statement", signature=receipt.signature)
    assert not verify_receipt(public_key=b"short", statement=b"statement", signature=b"")


def test_keys_are_the_same_after_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    keys = ReceiptKeys.generate("r1")
    file.write_text(keys.to_json())
    loaded = ReceiptKeys.load(file)
    assert loaded.public_keys() == keys.public_keys()
    assert loaded.sign(b"x") == keys.sign(b"x")


def test_a_retired_key_stays_listed_behind_the_current_one(tmp_path: Path) -> None:
    current = json.loads(ReceiptKeys.generate("r2").to_json())["keys"]
    file = tmp_path / "keys.json"
    retired = {"id": "r1", "public_key": "A" * 43 + "="}
    file.write_text(json.dumps({"keys": [*current, retired]}))
    keys = ReceiptKeys.load(file)
    assert [key_id for key_id, _ in keys.public_keys()] == ["r2", "r1"]
    assert ReceiptKeys.load(file).to_json() == keys.to_json()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"keys": 3}',
        '{"keys": []}',
        '{"keys": [{"id": "a"}]}',
        '{"keys": [{"id": "a", "private_key": "QQ=="}]}',
    ],
)
def test_a_bad_key_file_is_named_and_its_content_is_not(tmp_path: Path, content: str) -> None:
    file = tmp_path / "keys.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"keys\.json") as refused:
        ReceiptKeys.load(file)
    assert "QQ==" not in str(refused.value)
