"""A replica killed while an operator's changes go through it: effects and records stay together."""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

from doorcard.table.v1 import admin_pb2, admin_pb2_grpc
from grpc import aio

from tests import valkey
from tests.conftest import Room
from tests.contract.table.replicas import SHARDS, Cluster, cluster
from tests.contract.table.test_operators_service import Admin

ROUNDS = 4
START_S = 30.0


@asynccontextmanager
async def replica_process(
    tables: Cluster, folder: Path, name: str, **more: str
) -> AsyncIterator[str]:
    """`python -m services.table`; its address. Killed at the end, whatever it does. more: further
    variables of its own.
    """
    seals, ready = folder / "seal.json", folder / f"{name}.json"
    seals.write_text(tables.keys.to_json())
    settings = {
        "table_redis_url": tables.server.url,
        "table_seal_keys_file": str(seals),
        "shards": str(SHARDS),
        "listen": "127.0.0.1:0",
        "metrics_listen": "127.0.0.1:0",
        "replica_id": name,
        "ready_file": str(ready),
        "auth_keys_file": str(tables.room.auth_keys_file),
        "token_file": str(tables.room.token_file("table", ("service",))),
        **tables.addresses,
        **more,
    }
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DOORCARD_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "services.table"],
        env={**kept, **{f"DOORCARD_{key.upper()}": value for key, value in settings.items()}},
        stderr=subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(START_S):
            while not ready.exists():
                assert process.poll() is None
                await asyncio.sleep(0.02)
        yield f"127.0.0.1:{json.loads(ready.read_text())['grpc']}"
    finally:
        process.kill()
        process.wait()


async def test_no_effect_without_its_record_and_no_record_without_its_effect(
    room: Room, server: valkey.Valkey, tmp_path: Path
) -> None:
    seed = random.randrange(10**6)
    rng = random.Random(seed)
    print(f"seed {seed}")
    async with cluster(room, server) as tables:
        await tables.add_replica()
        admin = Admin(tables)
        table_id = await tables.create()
        metadata = room.metadata("olga", ("operator",))
        answered = 0
        for turn in range(ROUNDS):
            async with (
                replica_process(tables, tmp_path, f"victim-{turn}") as address,
                aio.insecure_channel(address) as channel,
            ):
                stub = admin_pb2_grpc.TableAdminServiceStub(channel)
                calls = [
                    stub.Announce(
                        admin_pb2.AnnounceRequest(
                            request_id=str(uuid4()), table_id=table_id, text=f"{turn}.{n}"
                        ),
                        metadata=metadata,
                        timeout=5,
                    )
                    for n in range(6)
                ]
                # Killed at some moment while they are under way.
                await asyncio.sleep(rng.uniform(0, 0.01))
                answered += sum(call.done() for call in calls)
        records = [each for each in await admin.records() if each.action == "announce"]
        said = [(change.before, change.after) for each in records for change in each.changes]
        texts = ["", *(after for _, after in said)]
        # Each began with what the one before it left: nothing was changed off the record.
        assert sorted(before for before, _ in said) == sorted(texts[:-1]), f"seed {seed}"
        by_before = dict(said)
        at, seen = "", 0
        while at in by_before:
            at, seen = by_before[at], seen + 1
        assert seen == len(said), f"seed {seed}"
        # And the last one holds.
        assert (await admin.view(table_id)).announcement == at, f"seed {seed}"
        assert len(said) >= answered, f"seed {seed}"
