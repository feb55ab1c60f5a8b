"""A room of fakes, and settlement's parts wired to it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doorcard.history.v1 import history_pb2 as pb

from services.history import views
from services.runtime.ids import uuid7
from services.settlement.peers import Peers, connect_peers
from services.settlement.settings import WorkerSettings
from tests import hand_records as hands
from tests import valkey
from tests.contract.settlement import fakes
from tests.contract.settlement.fakes import FakeRoom
from tests.contract.settlement.processes import Process, Start


@pytest.fixture
def fake_room() -> Iterator[FakeRoom]:
    """Table, wallet and history that keep the contract's word."""
    with fakes.running() as room:
        yield room


def settings_for(room: FakeRoom, **fields: Any) -> WorkerSettings:
    """A worker's settings that lead to the fakes."""
    return WorkerSettings(
        table_addresses=(room.address,),
        wallet_address=room.address,
        history_address=room.address,
        **fields,
    )


@pytest.fixture
def peers(fake_room: FakeRoom, tmp_path: Path) -> Peers:
    """Stubs of the fakes."""
    return connect_peers(settings_for(fake_room), timeout_s=5)


def ask(room: FakeRoom, player_id: str, address: str = "") -> pb.EmailRequest:
    """A player's request that is due, with his view of a hand."""
    request = pb.EmailRequest(
        email_request_id=uuid7(),
        player_id=player_id,
        address=address or f"{player_id}@example.net",
        attempt=1,
        hand=views.for_player(hands.showdown(), player_id),
    )
    room.history.due.append(request)
    return request


@pytest.fixture(scope="session")
def broker() -> Iterator[valkey.Valkey]:
    """The broker, a server of its own."""
    with valkey.running() as server:
        yield server


@pytest.fixture
def start(fake_room: FakeRoom, broker: valkey.Valkey, tmp_path: Path) -> Iterator[Start]:
    """Start a worker or beat that is ready; whatever is left at the end is killed."""
    broker.flush()
    started: list[Process] = []

    def launch(role: str, **settings: str) -> Process:
        name = f"{role}-{len(started)}"
        environment = {
            "DOORCARD_BROKER_URL": broker.url.replace("unix://", "redis+socket://"),
            "DOORCARD_TABLE_ADDRESSES": fake_room.address,
            "DOORCARD_WALLET_ADDRESS": fake_room.address,
            "DOORCARD_HISTORY_ADDRESS": fake_room.address,
            "DOORCARD_METRICS_LISTEN": "127.0.0.1:0",
            "DOORCARD_READY_FILE": str(tmp_path / f"{name}.ready"),
            "DOORCARD_DRAIN_EVERY_SECONDS": "0.1",
            "DOORCARD_MAILS_EVERY_SECONDS": "0.1",
            "DOORCARD_SOFT_SHUTDOWN_SECONDS": "1",
            **{f"DOORCARD_{key.upper()}": value for key, value in settings.items()},
        }
        log_file = tmp_path / f"{name}.log"
        with log_file.open("wb") as log:
            popen = subprocess.Popen(
                [sys.executable, "-m", "services.settlement", role],
                env={**os.environ, **environment},
                stdout=log,
                stderr=log,
            )
        process = Process(popen, tmp_path / f"{name}.ready", log_file)
        started.append(process)
        process.wait_ready()
        return process

    yield launch
    for process in started:
        if process.popen.poll() is None:
            process.kill()
