"""One item that a background loop cannot deal with ends neither the loop nor the replica."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from services.runtime.errors import Internal
from services.table.faults import FAULTS, Loop, passed_over
from services.table.lobby.closed_tables import ClosedTables
from services.table.lobby.lobby import Lobby
from services.table.operators.operators import Operators
from services.table.operators.reopened_shards import ReopenedShards
from services.table.operators.scheduler import ANNOUNCEMENTS, Scheduler
from services.table.operators.schedules import SHELF
from services.table.store import store_gauges
from services.table.store.store import Store
from services.table.store.store_gauges import StoreGauges
from services.table.tables.tables import Tables


def passed(loop: Loop) -> float:
    return FAULTS.labels(loop)._value.get()  # type: ignore[no-any-return]


class Shelves:
    """A schedule whose time cannot be read, and one whose can."""

    async def read(self, shelf: str) -> dict[str, str]:
        assert shelf in (SHELF, ANNOUNCEMENTS)
        return {"broken": "soon", "whole": "1"} if shelf == SHELF else {}


class Three:
    """A store of three shards with a line each in the lobby, of which the second is broken."""

    shards = 3
    shelves = Shelves()

    def now_ms(self, *_: object) -> int:
        return 1000

    async def lobby_of(self, shard: int) -> dict[str, bytes]:
        return {f"table-{shard}": b"\x09"}


STORE = cast(Store, Three())


def failing_at(second: object, seen: list[Any]) -> Callable[..., Awaitable[None]]:
    async def work(item: object, *_: object) -> None:
        seen.append(item)
        if item == second:
            raise ValueError("a fault")

    return work


def test_a_fault_is_counted_and_passed_over_and_a_refusal_is_not() -> None:
    before = passed(Loop.WAKES)
    with passed_over(Loop.WAKES, "table"):
        raise ValueError("a fault")
    assert passed(Loop.WAKES) == before + 1
    with pytest.raises(Internal), passed_over(Loop.WAKES):
        raise Internal("STORE_FAULT", "the store refused a command")
    assert passed(Loop.WAKES) == before + 1


async def test_a_shard_that_cannot_be_recorded_does_not_keep_the_others_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []
    reopened = ReopenedShards(STORE)
    monkeypatch.setattr(reopened, "_look_at", failing_at(1, seen))
    await reopened.once()
    assert seen == [0, 1, 2]


async def test_a_shard_of_the_lobby_that_cannot_be_taken_does_not_hide_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    lobby = Lobby(STORE)

    def take(shard: int, _lines: dict[str, bytes]) -> None:
        seen.append(shard)
        if shard == 1:
            raise ValueError("a fault")

    monkeypatch.setattr(lobby, "_take", take)
    await lobby._read()
    assert seen == [0, 1, 2]


async def test_a_schedule_that_cannot_be_read_does_not_keep_the_others_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []
    none = cast(Any, None)
    scheduler = Scheduler(STORE, none, none, none, cast(Operators, None))
    scheduler._faults = {"gone": "FAULT"}
    monkeypatch.setattr(scheduler, "_attend", failing_at("", seen))
    await scheduler.once()
    assert seen == ["whole"]
    assert not scheduler._faults


async def test_a_closed_table_with_a_broken_line_stays_and_the_round_goes_on() -> None:
    before = passed(Loop.CLOSED_TABLES)
    await ClosedTables(STORE, cast(Tables, None)).look_at(1)
    assert passed(Loop.CLOSED_TABLES) == before + 1


async def test_a_server_that_says_nothing_of_itself_does_not_end_the_measuring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = asyncio.Event()

    class Odd(Three):
        async def server_reports(self) -> list[Any]:
            return []

        async def tables_listed(self) -> int:
            return 3

        async def live_replicas(self) -> list[str]:
            measured.set()
            return []

    monkeypatch.setattr(store_gauges, "MEASURE_EVERY_S", 0.0)
    running = asyncio.create_task(StoreGauges(cast(Store, Odd())).run())
    async with asyncio.timeout(10):
        await measured.wait()
    assert not running.done()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
