"""A room of fakes, and settlement's parts wired to it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.settlement.peers import Peers, connect_peers
from services.settlement.settings import WorkerSettings
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
