"""A replica killed or halted at every step of a reopening: another one finishes it."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from services.table.store.stored import ShardState
from tests.conftest import Room
from tests.contract.conftest import postgres_cluster
from tests.contract.reopening.conftest import ledger_template, ledger_url, start
from tests.contract.reopening.rooms import PATIENCE_S, Scene
from tests.contract.reopening.test_steps_of_a_reopening import (
    POINTS,
    by_hand,
    close,
    reopen_at_last,
)
from tests.contract.table.replicas import SHARDS
from tests.contract.wallet.conftest import Start
from tests.processes import ServiceProcess

__all__ = ["ledger_template", "ledger_url", "postgres_cluster", "start"]

ROUNDS: Final = (*POINTS, "reopen.ledger_opened", "reopen.epoch_begun")
"""Those after which the ledger is one epoch ahead of the store, or the tables are, come twice."""


def replica(at: Scene, points: Path, number: int) -> ServiceProcess:
    """A table replica that dies where a file of `points` says."""
    room = at.tables.room
    seals = room.folder / "seals.json"
    seals.write_text(at.tables.keys.to_json())
    addresses = {name.upper(): address for name, address in at.tables.addresses.items()}
    return ServiceProcess(
        room,
        "table",
        TABLE_REDIS_URL=at.tables.server.url,
        TABLE_SEAL_KEYS_FILE=str(seals),
        SHARDS=str(SHARDS),
        REPLICA_ID=f"process-{number}",
        TOKEN_FILE=str(room.token_file("table", ("service",))),
        FAIL_POINTS=str(points),
        **addresses,
    )


async def until_killed(process: ServiceProcess) -> None:
    """It came by its fail point."""
    async with asyncio.timeout(PATIENCE_S):
        while process.process.poll() is None:
            await asyncio.sleep(0.02)
    assert process.process.returncode == -signal.SIGKILL


async def until_halted(process: ServiceProcess) -> None:
    """It stands at its fail point."""
    status = Path(f"/proc/{process.process.pid}/stat")
    async with asyncio.timeout(PATIENCE_S):
        while status.read_text().rpartition(")")[2].split()[0] != "T":
            await asyncio.sleep(0.02)


@asynccontextmanager
async def with_settlement(at: Scene) -> AsyncIterator[None]:
    """Triggers come all the time."""
    settling = asyncio.create_task(at.settle())
    try:
        yield
    finally:
        settling.cancel()
        await asyncio.gather(settling, return_exceptions=True)


async def lose_a_table(at: Scene, table: str, player: str) -> int:
    """A hand in progress, and a table that is lost with its player; the shard's epoch, closed."""
    await at.play_hand(table)
    await at.act(table)
    lost = await at.create(beside=table)
    await at.seat(lost, player)
    await at.drain(table)
    at.lose_table(lost)
    return await close(at, at.shard_of(table))


@pytest.mark.deep
@pytest.mark.timeout(300)
async def test_killed_at_every_step_money_is_where_it_was(room: Room, start: Start) -> None:
    points = room.folder / "points"
    points.mkdir()
    async with by_hand(room, start) as at:
        table = await at.create()
        shard = at.shard_of(table)
        await at.seat(table, "anna", "ben")
        running = replica(at, points, 0)
        try:
            await asyncio.to_thread(running.ready)
            for number, point in enumerate(ROUNDS, start=1):
                (points / point).touch()
                epoch = await lose_a_table(at, table, f"gina{number}")
                async with with_settlement(at):
                    await until_killed(running)
                assert (await at.store.shard(shard)).state.shut, point
                running = replica(at, points, number)
                await at.reopened(table, epoch + 1)
                await at.sound(shard)
                assert await at.wallet.balance(f"gina{number}", "XTS") == (200, 0, 0), point
            hand_id = await at.play_hand(table)
            await at.drain(table)
            assert hand_id in at.archive.hands
            await at.sound(shard)
        finally:
            running.kill()


@pytest.mark.deep
@pytest.mark.timeout(300)
async def test_one_that_was_halted_and_goes_on_too_late_changes_nothing(
    room: Room, start: Start
) -> None:
    points = room.folder / "points"
    points.mkdir()
    async with by_hand(room, start) as at:
        table = await at.create()
        shard = at.shard_of(table)
        await at.seat(table, "anna", "ben")
        running = replica(at, points, 0)
        try:
            await asyncio.to_thread(running.ready)
            for number, point in enumerate(POINTS):
                (points / point).write_text("SIGSTOP")
                epoch = await lose_a_table(at, table, f"gina{number}")
                async with with_settlement(at):
                    await until_halted(running)
                await reopen_at_last(at, shard)
                hand_id = await at.play_hand(table)
                if number % 2:
                    # It wakes up to another reopening than the one it was in.
                    await at.drain(table)
                    epoch = await close(at, shard)
                    await reopen_at_last(at, shard)
                    hand_id = await at.play_hand(table)
                running.process.send_signal(signal.SIGCONT)
                await at.play_hand(table)
                await at.sound(shard)
                found = await at.store.shard(shard)
                assert (found.state, found.epoch) == (ShardState.OPEN, epoch + 1), point
                assert hand_id in at.archive.hands
        finally:
            running.kill()
