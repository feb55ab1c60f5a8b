"""A replica as a process: settings it refuses, a room it does not belong to, an orderly end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from services.runtime.sealing import SealKeys, new_key
from services.table.store.store import SettingsDiffer
from tests import valkey
from tests.conftest import Room
from tests.contract.table.replicas import cluster


def command(**settings: str) -> "subprocess.Popen[str]":
    """`python -m services.table` with these settings and no other."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DOORCARD_")}
    return subprocess.Popen(
        [sys.executable, "-m", "services.table"],
        env={**kept, **{f"DOORCARD_{key.upper()}": value for key, value in settings.items()}},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_missing_setting_is_one_clear_line_and_status_2() -> None:
    process = command()
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 2
    assert sorted(line.partition(":")[0] for line in errors.splitlines()) == [
        "DOORCARD_TABLE_REDIS_URL",
        "DOORCARD_TABLE_SEAL_KEYS_FILE",
    ]


def test_a_replica_says_when_it_is_ready_and_ends_with_status_0(
    room: Room, server: valkey.Valkey, tmp_path: Path
) -> None:
    seals = tmp_path / "seal.json"
    seals.write_text(SealKeys("test", {"k1": new_key()}).to_json())
    ready = tmp_path / "ready.json"
    process = command(
        table_redis_url=server.url,
        table_seal_keys_file=str(seals),
        listen="127.0.0.1:0",
        metrics_listen="127.0.0.1:0",
        ready_file=str(ready),
        auth_keys_file=str(room.auth_keys_file),
        wallet_address="127.0.0.1:1",
        drain_seconds="1",
    )
    try:
        until = time.monotonic() + 30
        while not ready.exists():
            assert process.poll() is None, process.stderr and process.stderr.read()
            assert time.monotonic() < until
            time.sleep(0.02)
        assert json.loads(ready.read_text())["grpc"]
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 0, errors
        assert all(json.loads(line)["service"] == "table" for line in errors.splitlines())
    finally:
        process.kill()


async def test_a_wallet_with_another_number_of_shards_is_refused(
    room: Room, server: valkey.Valkey
) -> None:
    async with cluster(room, server) as tables:
        tables.wallet.shards += 1
        with pytest.raises(SettingsDiffer):
            await tables.add_replica()
