"""A Valkey for the tests of the store, and stores on it."""

from collections.abc import Iterator

import pytest

from tests import valkey
from tests.contract.table_store.stores import OpenStore, store_on


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[valkey.Valkey]:
    """One server for all tests of a worker."""
    with valkey.running() as server:
        yield server


@pytest.fixture
def server(valkey_server: valkey.Valkey) -> valkey.Valkey:
    """The server, empty."""
    valkey_server.flush()
    return valkey_server


@pytest.fixture
def open_store(server: valkey.Valkey) -> OpenStore:
    """`async with open_store() as store`: a replica's store on the empty server."""
    return lambda **more: store_on(server, **more)
