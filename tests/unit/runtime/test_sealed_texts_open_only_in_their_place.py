"""Seals: opened with the same keys in the same place, and nowhere else."""

from pathlib import Path
from typing import Any

import pytest

from services.runtime.sealing import SealBroken, SealKeys, key_id_of, new_key

OLD, NEW = new_key(), new_key()
KEYS = SealKeys("room-1", {"new": NEW, "old": OLD})
PLACE: dict[str, Any] = {"table": "t1", "purpose": "blob", "version": 2**32 + 7}
TEXT = b"a blob of a table"


def test_what_was_sealed_opens() -> None:
    sealed = KEYS.seal(TEXT, **PLACE)
    assert KEYS.open(sealed, **PLACE) == TEXT
    assert TEXT not in sealed


def test_the_same_text_never_seals_to_the_same_bytes() -> None:
    assert KEYS.seal(TEXT, **PLACE) != KEYS.seal(TEXT, **PLACE)


@pytest.mark.parametrize("change", [{"table": "t2"}, {"purpose": "event"}, {"version": 2**32 + 8}])
def test_it_opens_in_no_other_place(change: dict[str, Any]) -> None:
    with pytest.raises(SealBroken):
        KEYS.open(KEYS.seal(TEXT, **PLACE), **{**PLACE, **change})


def test_it_opens_in_no_other_room() -> None:
    with pytest.raises(SealBroken):
        SealKeys("room-2", {"new": NEW}).open(KEYS.seal(TEXT, **PLACE), **PLACE)


def test_table_and_purpose_do_not_run_together() -> None:
    sealed = KEYS.seal(TEXT, table="ab", purpose="c", version=1)
    with pytest.raises(SealBroken):
        KEYS.open(sealed, table="a", purpose="bc", version=1)


def test_no_changed_byte_goes_unnoticed() -> None:
    sealed = KEYS.seal(TEXT, **PLACE)
    for index in range(len(sealed)):
        changed = bytearray(sealed)
        changed[index] ^= 1
        with pytest.raises(SealBroken):
            KEYS.open(bytes(changed), **PLACE)


@pytest.mark.parametrize("rubbish", [b"", b"\x01", b"\x01\x03new", b"\x02" + bytes(40), bytes(40)])
def test_rubbish_is_broken(rubbish: bytes) -> None:
    with pytest.raises(SealBroken):
        KEYS.open(rubbish, **PLACE)


def test_an_older_key_opens_and_the_current_one_seals() -> None:
    earlier = SealKeys("room-1", {"old": OLD}).seal(TEXT, **PLACE)
    assert KEYS.open(earlier, **PLACE) == TEXT
    assert not KEYS.is_current(earlier)
    assert KEYS.is_current(KEYS.seal(TEXT, **PLACE))
    assert key_id_of(earlier) == "old"


def test_a_retired_key_opens_nothing() -> None:
    with pytest.raises(SealBroken, match="'old'"):
        SealKeys("room-1", {"new": NEW}).open(
            SealKeys("room-1", {"old": OLD}).seal(TEXT, **PLACE), **PLACE
        )


def test_a_key_file_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "seal.json"
    path.write_text(KEYS.to_json())
    loaded = SealKeys.load(path)
    assert loaded.current == "new"
    assert loaded.open(KEYS.seal(TEXT, **PLACE), **PLACE) == TEXT


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"room": "r"}',
        '{"room": "r", "keys": []}',
        '{"room": "r", "keys": [{"id": "a", "key": "c2hvcnQ="}]}',
        '{"room": "r", "keys": [{"id": "a", "key": "%%%"}]}',
        '{"room": "r", "keys": [{"id": "a b", "key": "c2hvcnQ="}]}',
    ],
)
def test_a_bad_key_file_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "seal.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"seal\.json"):
        SealKeys.load(path)
