"""The store on a cluster of Redis itself, of the release that Debian has, whose nodes speak TLS
alone: what holds on three nodes of Valkey holds there.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests import valkey_cluster
from tests.contract.table_store.test_on_a_cluster import (
    test_a_shard_moves_to_another_node_while_its_table_goes_on,
    test_a_shard_that_has_moved_meanwhile_is_found_by_one_redirection,
    test_a_slot_that_nobody_has_is_unavailable_until_somebody_has_it,
    test_tables_of_all_shards_are_kept_on_all_nodes,
    test_the_doctor_looks_at_every_node,
)
from tests.valkey_cluster import Kind, Tls, ValkeyCluster

__all__ = [
    "test_a_shard_moves_to_another_node_while_its_table_goes_on",
    "test_a_shard_that_has_moved_meanwhile_is_found_by_one_redirection",
    "test_a_slot_that_nobody_has_is_unavailable_until_somebody_has_it",
    "test_tables_of_all_shards_are_kept_on_all_nodes",
    "test_the_doctor_looks_at_every_node",
]
pytestmark = pytest.mark.deep

PROGRAM = Path("/usr/bin/redis-check-rdb")
"""Called by another name it is the server; the package without a service that starts has it."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyCluster]:
    """One cluster for this file."""
    assert PROGRAM.exists(), "make deploy-tools installs it (Debian: redis-tools)"
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    tls = Tls(folder / "certificate.pem", folder / "key.pem", folder / "authority.pem")
    issued.cert_chain_pems[0].write_to_path(tls.certificate)
    issued.private_key_pem.write_to_path(tls.key)
    authority.cert_pem.write_to_path(tls.authority)
    with valkey_cluster.running(primaries=3, kind=Kind(PROGRAM, tls)) as cluster:
        yield cluster
