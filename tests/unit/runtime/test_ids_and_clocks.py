"""Ids sort by time, repeat where they must, and are checked where they come in."""

import time
import uuid

import pytest

from services.runtime import clock, ids
from services.runtime.errors import InvalidArgument


def test_uuid7_is_version_7_and_holds_the_time() -> None:
    before_ms = time.time_ns() // 1_000_000
    made = uuid.UUID(ids.uuid7())
    after_ms = time.time_ns() // 1_000_000
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert before_ms <= made.int >> 80 <= after_ms


def test_uuid7s_differ() -> None:
    assert len({ids.uuid7() for _ in range(10_000)}) == 10_000


def test_uuid5_of_the_same_is_the_same_and_parts_do_not_run_together() -> None:
    made = ids.uuid5_of("buy-in", "anna", 7, "r1")
    assert made == ids.uuid5_of("buy-in", "anna", 7, "r1")
    assert uuid.UUID(made).version == 5
    assert ids.uuid5_of("x", "ab", "c") != ids.uuid5_of("x", "a", "bc")
    assert ids.uuid5_of("x", "a") != ids.uuid5_of("y", "a")


@pytest.mark.parametrize("value", ["a", "A.b_c:d-9", "x" * 64])
def test_possible_ids_pass(value: str) -> None:
    assert ids.check_request_id(value) == value
    assert ids.check_player_id(value, "player") == value


@pytest.mark.parametrize("value", ["", "x" * 65, "two words", "ä", "a\n", "a/b"])
def test_impossible_ids_name_the_field(value: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        ids.check_request_id(value, "action.request_id")
    assert refused.value.violations[0][0] == "action.request_id"


def test_uuids_are_canonical() -> None:
    made = ids.uuid7()
    assert ids.check_uuid(made.upper(), "hand_id") == made
    for bad in ("", made[:-1], made.replace("-", ""), "{" + made[1:-1] + "}", "g" * 36):
        with pytest.raises(InvalidArgument):
            ids.check_uuid(bad, "hand_id")


def test_timestamps_keep_milliseconds() -> None:
    at_ms = 1_796_062_480_123
    assert clock.milliseconds(clock.timestamp(at_ms)) == at_ms
    assert clock.utc_text(at_ms) == "2026-11-30T18:14:40.123Z"
