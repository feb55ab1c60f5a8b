"""A line to a node that no longer has its slots: what it handed on is not its own any more."""

import asyncio
from pathlib import Path

import pytest

from services.runtime.errors import Unavailable
from services.table.store.line import Command, Line, packed


def command() -> Command:
    """One that waits for its answer."""
    loop = asyncio.get_running_loop()
    return Command(packed("PING"), "{t1}:x", loop.create_future(), loop.time() + 60, durable=False)


async def test_a_command_that_was_handed_on_is_not_failed_when_its_first_line_closes(
    tmp_path: Path,
) -> None:
    handed_on: asyncio.Queue[Command] = asyncio.Queue()
    line = Line(
        f"unix://{tmp_path / 'nobody'}", (), elsewhere=lambda each, _: handed_on.put_nowait(each)
    )
    line.start()
    sent = command()
    line.leave(sent)
    async with asyncio.timeout(10):
        assert await handed_on.get() is sent
    await line.close()
    assert not sent.answered
    sent.succeed(b"PONG")
    assert await sent.answer == b"PONG"


async def test_a_command_that_nobody_else_has_fails_when_its_line_closes(tmp_path: Path) -> None:
    line = Line(f"unix://{tmp_path / 'nobody'}", ())
    line.start()
    sent = command()
    line.leave(sent)
    await asyncio.sleep(0)
    await line.close()
    with pytest.raises(Unavailable) as refused:
        await sent.answer
    assert refused.value.reason == "STORE_AWAY"
