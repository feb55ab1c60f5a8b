"""One room in which hands were played, for all tests that only look at it."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from rich.console import Console

from services.local.demo import run_demo
from services.local.room import Room
from services.local.summary import Summary
from tests.deploy.room import running_room

HANDS = 28
"""Enough that every kind of thing has happened, mails among them."""


@dataclass
class Played:
    """A running room, and what its demo found."""

    room: Room
    summary: Summary


@pytest.fixture(scope="session")
def played() -> Iterator[Played]:
    with running_room() as (room, runner):
        summary = runner.run(run_demo(room, HANDS, console=Console(quiet=True)))
        yield Played(room, summary)
