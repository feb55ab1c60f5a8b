"""Commands of a table one at a time, bounded, and gone when there is no work."""

import asyncio
from collections.abc import Mapping
from functools import partial

import pytest

from services.runtime.errors import ResourceExhausted
from services.runtime.logs import bind, bound, trace_id
from services.runtime.metrics import REGISTRY
from services.table.tables.mailbox import (
    PER_PLAYER_MAX,
    PLAYERS_WAITING_MAX,
    TICKS,
    TICKS_MAX,
    Mailboxes,
)


def depth() -> float | None:
    """What Prometheus reads."""
    return REGISTRY.get_sample_value("doorcard_table_mailbox_depth")


class Work:
    """Commands that wait until they are let go, and what order they ran in."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.ran: list[str] = []
        self.running = 0
        self.most = 0

    async def do(self, name: str) -> str:
        self.running += 1
        self.most = max(self.most, self.running)
        await self.gate.wait()
        self.ran.append(name)
        self.running -= 1
        return name


async def test_commands_run_one_at_a_time_in_the_order_they_came() -> None:
    boxes, work = Mailboxes(), Work()
    futures = [boxes.submit("t", f"p{n}", partial(work.do, f"p{n}")) for n in range(5)]
    work.gate.set()
    assert await asyncio.gather(*futures) == work.ran == [f"p{n}" for n in range(5)]
    assert work.most == 1


async def test_tables_do_not_wait_for_one_another() -> None:
    boxes, work, other = Mailboxes(), Work(), Work()
    slow = boxes.submit("a", "p", lambda: work.do("slow"))
    other.gate.set()
    assert await boxes.submit("b", "p", lambda: other.do("quick")) == "quick"
    assert not slow.done()
    work.gate.set()
    await slow


async def test_a_mailbox_is_gone_when_its_work_is_done() -> None:
    boxes, work = Mailboxes(), Work()
    future = boxes.submit("t", "p", lambda: work.do("one"))
    assert boxes.busy("t")
    work.gate.set()
    await future
    await boxes.emptied()
    assert not boxes.busy("t")
    assert not boxes._boxes


async def test_a_player_has_few_places_and_ticks_have_their_own() -> None:
    boxes, work = Mailboxes(), Work()
    boxes.submit("t", "first", lambda: work.do("first"))
    await asyncio.sleep(0)
    for _ in range(PER_PLAYER_MAX):
        boxes.submit("t", "spammer", lambda: work.do("spam"))
    with pytest.raises(ResourceExhausted) as caught:
        boxes.submit("t", "spammer", lambda: work.do("spam"))
    assert caught.value.reason == "MAILBOX_FULL"
    assert caught.value.retry_after_ms
    boxes.submit("t", "other", lambda: work.do("other"))
    for _ in range(TICKS_MAX):
        boxes.submit("t", TICKS, lambda: work.do("tick"))
    with pytest.raises(ResourceExhausted):
        boxes.submit("t", TICKS, lambda: work.do("tick"))
    work.gate.set()
    await boxes.emptied()


async def test_many_strangers_leave_room_for_ticks_and_for_who_sits_there() -> None:
    boxes, work = Mailboxes(lambda table, player: (table, player) == ("t", "who sits")), Work()
    boxes.submit("t", "first", lambda: work.do("first"))
    await asyncio.sleep(0)
    for n in range(PLAYERS_WAITING_MAX):
        boxes.submit("t", f"p{n}", lambda: work.do("p"))
    with pytest.raises(ResourceExhausted):
        boxes.submit("t", "one more", lambda: work.do("p"))
    tick = boxes.submit("t", TICKS, lambda: work.do("tick"))
    seated = boxes.submit("t", "who sits", lambda: work.do("seated"))
    work.gate.set()
    assert await tick == "tick"
    assert await seated == "seated"


async def test_a_command_runs_although_nobody_waits_for_it() -> None:
    boxes, work = Mailboxes(), Work()
    waiting = asyncio.ensure_future(asyncio.shield(boxes.submit("t", "p", lambda: work.do("done"))))
    await asyncio.sleep(0)
    waiting.cancel()
    work.gate.set()
    await boxes.emptied()
    assert work.ran == ["done"]


async def test_a_turn_has_the_ids_of_the_call_that_asked_for_it_and_of_no_other() -> None:
    boxes, gate = Mailboxes(), asyncio.Event()
    seen: dict[str, list[object]] = {}

    async def work(name: str) -> None:
        at_first = bound()
        bind(hand=name)
        await gate.wait()
        # Whatever the turn starts belongs to the same call.
        seen[name] = [at_first, trace_id(), await asyncio.create_task(ids_of_a_task())]

    async def ids_of_a_task() -> Mapping[str, object]:
        return bound()

    async def call(name: str, **ids: str) -> None:
        bind(**ids)
        await boxes.submit("t", name, partial(work, name))

    calls = [
        asyncio.create_task(call("one", trace="t-1", request="r-1")),
        asyncio.create_task(call("two", trace="t-2")),
        asyncio.create_task(call("three")),
    ]
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*calls)
    assert seen == {
        "one": [
            {"trace": "t-1", "request": "r-1"},
            "t-1",
            {"trace": "t-1", "request": "r-1", "hand": "one"},
        ],
        "two": [{"trace": "t-2"}, "t-2", {"trace": "t-2", "hand": "two"}],
        "three": [{}, "", {"hand": "three"}],
    }


async def test_an_error_is_the_command_s_own() -> None:
    boxes, work = Mailboxes(), Work()
    work.gate.set()

    async def fails() -> None:
        raise RuntimeError("no")

    async def is_cut() -> None:
        raise asyncio.CancelledError

    failing = boxes.submit("t", "p", fails)
    cut = boxes.submit("t", "p", is_cut)
    fine = boxes.submit("t", "p", lambda: work.do("fine"))
    with pytest.raises(RuntimeError):
        await failing
    with pytest.raises(asyncio.CancelledError):
        await cut
    assert await fine == "fine"


async def test_the_depth_is_measured() -> None:
    boxes, work = Mailboxes(), Work()
    for n in range(3):
        boxes.submit("t", f"p{n}", lambda: work.do("p"))
    assert depth() == 3
    await asyncio.sleep(0)
    assert depth() == 2
    work.gate.set()
    await boxes.emptied()
    assert depth() == 0


async def test_what_is_left_of_a_mailbox_that_is_cut_off_is_measured_no_longer() -> None:
    boxes, work = Mailboxes(), Work()
    waiting = [boxes.submit("t", f"p{n}", lambda: work.do("p")) for n in range(3)]
    await asyncio.sleep(0)
    task = boxes._boxes["t"].task
    assert task is not None
    task.cancel()
    await boxes.emptied()
    assert all(each.cancelled() for each in waiting)
    assert depth() == 0
