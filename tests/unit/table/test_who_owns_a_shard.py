"""Rendezvous hashing: all replicas agree, and few shards move."""

from collections import Counter

from services.table.streams.ownership import Ownership, owners_of
from services.table.streams.routing import routes

SHARDS = 256
REPLICAS = [f"table-{number}" for number in range(4)]


def test_the_answer_is_the_same_for_ever() -> None:
    assert owners_of(8, ["a", "b", "c"]) == ["a", "c", "c", "c", "a", "c", "b", "b"]


def test_it_does_not_depend_on_the_order_of_the_replicas() -> None:
    assert owners_of(SHARDS, REPLICAS) == owners_of(SHARDS, reversed(REPLICAS))


def test_every_replica_has_its_part() -> None:
    counts = Counter(owners_of(SHARDS, REPLICAS))
    assert set(counts) == set(REPLICAS)
    assert min(counts.values()) > SHARDS / len(REPLICAS) / 2


def test_only_the_shards_of_the_one_that_goes_move() -> None:
    before, after = owners_of(SHARDS, REPLICAS), owners_of(SHARDS, REPLICAS[1:])
    moved = [old for old, new in zip(before, after, strict=True) if old != new]
    assert set(moved) == {REPLICAS[0]}
    assert REPLICAS[0] not in after


def test_without_replicas_nobody_owns_anything() -> None:
    assert owners_of(3, []) == ["", "", ""]


def test_clients_are_told_addresses_and_owners_by_index() -> None:
    ownership = Ownership("b", 8)
    told = ownership.next_change
    assert not any(map(ownership.owns, range(8)))
    assert set(routes(ownership).owners) == {-1}
    ownership.learn({"b": "127.0.0.1:2", "a": "", "c": "127.0.0.1:3"})
    assert told.is_set()
    assert [shard for shard in range(8) if ownership.owns(shard)] == [6, 7]
    message = routes(ownership)
    assert message.shards == 8
    assert [each.replica_id for each in message.replicas] == ["a", "b", "c"]
    assert [each.address for each in message.replicas] == ["", "127.0.0.1:2", "127.0.0.1:3"]
    assert list(message.owners) == [0, 2, 2, 2, 0, 2, 1, 1]
