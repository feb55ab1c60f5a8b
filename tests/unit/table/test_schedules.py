"""When scheduled tables open and close: by the room's clock, and after an outage."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from doorcard.table.v1 import admin_pb2
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from services.runtime.clock import MS_PER_S
from services.table.operators import schedules
from services.table.operators.schedules import Schedule, skipped, table_id

BERLIN = ZoneInfo("Europe/Berlin")
DAY_MS = 86_400_000
ONCE, DAILY, WEEKLY = (
    admin_pb2.REPEAT_UNSPECIFIED,
    admin_pb2.REPEAT_DAILY,
    admin_pb2.REPEAT_WEEKLY,
)


def at(text: str, zone: ZoneInfo = BERLIN) -> int:
    """Milliseconds of a local time."""
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()) * MS_PER_S


def local(ms: int) -> str:
    """What the clock in Berlin says."""
    return datetime.fromtimestamp(ms / MS_PER_S, tz=BERLIN).isoformat()[:16]


def schedule(opens: str, closes: str = "", repeat: int = DAILY) -> Schedule:
    """Tables from `opens` to `closes`, local times."""
    return Schedule(
        template="night",
        opens_ms=at(opens),
        closes_ms=at(closes) if closes else 0,
        tables=2,
        repeat=repeat,
        zone="Europe/Berlin",
        operator="olga",
        roles=("operator",),
        request_id="r",
        reason="",
        asked=b"",
    )


def test_what_comes_again_keeps_its_local_time_across_summer_time() -> None:
    nightly = schedule("2026-03-28T20:00", "2026-03-29T04:00")
    assert [local(nightly.times(n)[0]) for n in range(3)] == [
        "2026-03-28T20:00",
        "2026-03-29T20:00",
        "2026-03-30T20:00",
    ]
    assert [local(nightly.times(n)[1]) for n in (0, 1)] == ["2026-03-29T04:00", "2026-03-30T04:00"]
    assert nightly.times(1)[0] - nightly.times(0)[0] == DAY_MS - 3_600_000
    weekly = schedule("2026-10-24T20:00", repeat=WEEKLY)
    assert local(weekly.times(1)[0]) == "2026-10-31T20:00"
    assert weekly.times(1)[0] - weekly.times(0)[0] == 7 * DAY_MS + 3_600_000


@given(st.integers(0, 5000), st.sampled_from([DAILY, WEEKLY]))
def test_the_nth_time_is_at_the_same_clock_time(occurrence: int, repeat: int) -> None:
    evening = schedule("2026-11-30T21:30", repeat=repeat)
    opens_ms, _ = evening.times(occurrence)
    days = timedelta(days=occurrence * (1 if repeat == DAILY else 7))
    expected = datetime(2026, 11, 30, 21, 30) + days  # noqa: DTZ001 (a local time)
    assert local(opens_ms) == expected.isoformat()[:16]


def test_after_an_outage_only_what_should_be_open_is_opened() -> None:
    nightly = schedule("2026-11-01T20:00", "2026-11-02T04:00")
    assert skipped(nightly, at("2026-11-01T19:59")).next == 0
    assert skipped(nightly, at("2026-11-01T20:01")).next == 0
    assert skipped(nightly, at("2026-11-02T05:00")).next == 1
    assert skipped(nightly, at("2026-11-08T22:00")).next == 7
    endless = schedule("2026-11-01T20:00")
    assert skipped(endless, at("2026-11-08T22:00")).next == 7
    assert skipped(endless, at("2026-11-08T19:00")).next == 6
    once = schedule("2026-11-01T20:00", repeat=ONCE)
    assert skipped(once, at("2027-11-01T20:00")).next == 0
    late = skipped(schedule("2026-11-01T20:00", "2026-11-02T04:00", ONCE), at("2026-11-03T00:00"))
    assert (late.next, late.opens_again, late.due_ms) == (1, False, None)


def test_what_is_due_next_is_an_opening_or_a_closing() -> None:
    nightly = schedule("2026-11-01T20:00", "2026-11-02T04:00")
    assert nightly.due_ms == at("2026-11-01T20:00")
    opened = replace(nightly, next=1, open=(0,))
    assert opened.due_ms == at("2026-11-02T04:00")
    cancelled = replace(opened, cancelled=True)
    assert cancelled.due_ms == at("2026-11-02T04:00")
    assert replace(cancelled, open=()).due_ms is None


def test_what_is_shown_are_the_next_times_and_the_tables_that_are_open() -> None:
    nightly = replace(schedule("2026-11-01T20:00", "2026-11-02T04:00"), next=1, open=(0,))
    shown = schedules.shown("s", nightly)
    assert shown.opens_at.ToDatetime(tzinfo=UTC) == datetime(2026, 11, 2, 19, tzinfo=UTC)
    assert list(shown.open_table_ids) == [table_id("s", 0, 0), table_id("s", 0, 1)]
    done = replace(nightly, cancelled=True)
    assert not schedules.shown("s", done).HasField("opens_at")


@pytest.mark.parametrize("other", [("s", 0, 1), ("s", 1, 0), ("t", 0, 0)])
def test_every_scheduled_table_has_an_id_of_its_own(other: tuple[str, int, int]) -> None:
    assert table_id("s", 0, 0) == table_id("s", 0, 0)
    assert table_id("s", 0, 0) != table_id(*other)
