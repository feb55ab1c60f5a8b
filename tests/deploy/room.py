"""A room whose supervisor is the test itself."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from services.local.room import Room
from tests.integration.rooms import new_home


@contextmanager
def running_room(**settings: str) -> Iterator[tuple[Room, asyncio.Runner]]:
    """A room on free ports, and the runner on whose loop it lives; settings of all its services."""
    with new_home() as folder, asyncio.Runner() as runner:
        room = Room(folder, free_ports=True, extra_env=settings)
        runner.run(room.__aenter__())
        try:
            yield room, runner
        finally:
            runner.run(room.__aexit__(None, None, None))
