"""Servers that contract tests share, started once for each worker and only when asked for."""

from collections.abc import Iterator

import pytest

from tests import postgres


@pytest.fixture(scope="session")
def postgres_cluster() -> Iterator[postgres.Cluster]:
    """A PostgreSQL that gives out databases."""
    with postgres.running() as cluster:
        yield cluster
