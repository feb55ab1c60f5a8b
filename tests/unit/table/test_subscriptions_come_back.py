"""How soon a lost connection for wake-ups is made anew."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from redis.asyncio.connection import AbstractConnection

from services.table.store import subscription as module
from services.table.store.subscription import Subscription

TIMES = 4


class Breaking:
    """A connection that brings what it has and breaks off."""

    def __init__(self, *replies: list[bytes]) -> None:
        self._replies = list(replies)

    async def connect(self) -> None:
        pass

    async def send_command(self, *_words: Any) -> None:
        pass

    async def read_response(self, **_options: Any) -> list[bytes]:
        if not self._replies:
            raise ConnectionError
        return self._replies.pop(0)

    async def disconnect(self, **_options: Any) -> None:
        pass


async def failures_of(make: Callable[[], Breaking], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """After how many failures in a row each of the first pauses is reckoned."""
    paused: list[int] = []
    enough = asyncio.Event()

    def pause_s(failures: int) -> float:
        paused.append(failures)
        if len(paused) >= TIMES:
            enough.set()
        return 0.0

    monkeypatch.setattr(module, "backoff_s", pause_s)
    subscription = Subscription(
        lambda: cast(AbstractConnection, make()), lambda *_: None, lambda _: None
    )
    subscription.want(b"channel")
    subscription.start()
    try:
        async with asyncio.timeout(5):
            await enough.wait()
    finally:
        await subscription.close()
    return paused[:TIMES]


async def test_a_connection_that_never_answers_is_made_anew_ever_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await failures_of(Breaking, monkeypatch) == [1, 2, 3, 4]


async def test_one_that_answered_is_made_anew_at_once_however_many_were_lost_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    subscribed = [b"ssubscribe", b"channel"]
    assert await failures_of(lambda: Breaking(subscribed), monkeypatch) == [1, 1, 1, 1]
