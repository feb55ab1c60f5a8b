"""The room that tests share, run by `doorcard up`, and data folders for rooms of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.rooms import Command, Places, command, new_home


@pytest.fixture
def home() -> Iterator[Path]:
    """An empty data folder."""
    with new_home() as folder:
        yield folder


@pytest.fixture(scope="session")
def up() -> Iterator[Command]:
    """`doorcard up` on free ports, for all tests that leave the room as it is."""
    with new_home() as folder, command(folder, "up", "--free-ports") as running:
        running.until_up()
        yield running


@pytest.fixture
def places(up: Command) -> Places:
    """Where its services are, as it says now."""
    return Places.of(up.home)
