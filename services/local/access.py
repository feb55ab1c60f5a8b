"""Channels to a room on this machine for those who play in it by themselves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from services.client import Routes
from services.local.bots import Access, bearer
from services.local.room import Room
from services.runtime.channels import connect
from services.runtime.roles import Role
from services.runtime.settings import ServiceSettings

TOKEN_TTL_S: Final = 24 * 3600


@asynccontextmanager
async def open_access(room: Room, service: str, operator: str) -> AsyncIterator[Access]:
    """A channel to each table replica, to wallet and to history, and an operator's token.

    service: the name that the calls are made under. operator: the token's subject.
    """
    settings = ServiceSettings(service=service)
    token = room.signer.mint(operator, [Role.OPERATOR], TOKEN_TTL_S)
    tables = tuple(connect(address, settings) for address in room.table_addresses)
    wallet = connect(room.address("wallet"), settings)
    history = connect(room.address("history"), settings)
    watcher = bearer(token)
    try:
        async with Routes(
            room.table_addresses, lambda address: connect(address, settings), metadata=watcher
        ) as routes:
            yield Access(tables, routes, wallet, history, token)
    finally:
        for channel in (*tables, wallet, history):
            await channel.close()
