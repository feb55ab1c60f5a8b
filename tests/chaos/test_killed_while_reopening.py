"""A replica killed at every step of a reopening, as kill -9: the next one finishes it."""

import asyncio
import signal
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import Room
from tests.contract.conftest import postgres_cluster
from tests.contract.reopening.conftest import ledger_template, ledger_url, start
from tests.contract.reopening.rooms import PATIENCE_S, Scene
from tests.contract.reopening.test_steps_of_a_reopening import POINTS, by_hand, close
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
                await at.play_hand(table)
                await at.act(table)
                lost = await at.create(beside=table)
                await at.seat(lost, f"gina{number}")
                await at.drain(table)
                at.lose_table(lost)
                (points / point).touch()
                epoch = await close(at, shard)
                settling = asyncio.create_task(at.settle())
                try:
                    await until_killed(running)
                finally:
                    settling.cancel()
                    await asyncio.gather(settling, return_exceptions=True)
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
