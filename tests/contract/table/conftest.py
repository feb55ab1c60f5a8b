"""A Valkey for the tests of table replicas."""

from collections.abc import Iterator

import pytest

from tests import valkey


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
