"""A room of fakes, and settlement's parts wired to it."""

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
from tests.contract.settlement import fakes
from tests.contract.settlement.fakes import FakeRoom


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
