"""Stores on a Valkey, and commits to try on them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from services.runtime.sealing import SealKeys, new_key
from services.table.store.store import Store
from services.table.store.stored import Commit, Committed, OutboxItem, Stored
from tests import valkey, valkey_cluster

ROOM = "test-room"
KEYS = SealKeys(ROOM, {"k1": new_key()})
OpenStore = Callable[..., AbstractAsyncContextManager[Store]]
TABLE = "3f1c8f5e-0000-4000-8000-000000000001"


@asynccontextmanager
async def store_on(
    server: valkey.Valkey | valkey_cluster.ValkeyCluster, **more: object
) -> AsyncIterator[Store]:
    """A started store that opens shards itself, at epoch 1."""
    fields = {"room": ROOM, "shards": 4, "keys": KEYS, "replica_id": "replica-1", **more}
    store = Store(server.url, **fields)  # type: ignore[arg-type]

    async def opener(shard: int) -> None:
        await store.begin_opening(shard)
        await store.open_shard(shard, 1)

    store.opener = opener
    await store.start()
    try:
        yield store
    finally:
        await store.close()


def change(
    expected: Stored | None, blob: bytes, *outbox: tuple[str, bytes], **more: object
) -> Commit:
    """A commit on TABLE unless `more` says otherwise."""
    fields = {
        "table_id": TABLE,
        "expected": expected,
        "blob": blob,
        "event": b"event of " + blob,
        "deadline_ms": None,
        "outbox": [OutboxItem(*each) for each in outbox],
        **more,
    }
    return Commit(**fields)  # type: ignore[arg-type]


async def committed(store: Store, commit: Commit) -> Stored:
    """What is stored after a commit that must succeed."""
    outcome = await store.commit(commit)
    assert isinstance(outcome, Committed), outcome
    return Stored(outcome.version, outcome.tag, commit.blob)
