"""Which replica owns which shard: rendezvous hashing over the replicas that are alive.

The owner of a shard is the replica whose weight for it is the greatest. The weight is the first 8
bytes, big-endian, of BLAKE2b over `<replica id>/<shard>`; of equal weights the greater id wins. So
all replicas that see the same others agree without a word, and a replica that comes or goes moves
only the shards that it gets or had. Ownership is for speed: the owner sweeps the shard's deadlines
and clients play there, but any replica accepts anything, and versions keep it correct.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from prometheus_client import Counter, Gauge

from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY

OWNED: Final = Gauge("doorcard_shards_owned", "Shards that this replica owns.", registry=REGISTRY)
MOVES: Final = Counter(
    "doorcard_shard_moves",
    "Shards that this replica saw change their owner.",
    registry=REGISTRY,
)


class Ownership:
    """The owners as this replica sees them."""

    def __init__(self, replica_id: str, shards: int) -> None:
        self.owners: list[str] = [""] * shards
        """Replica id by shard; "" for none."""
        self.addresses: Mapping[str, str] = {}
        """Live replica -> where clients reach it."""
        self._replica_id = replica_id
        self._changed = asyncio.Event()

    def owns(self, shard: int) -> bool:
        """Whether it is this replica's."""
        return self.owners[shard] == self._replica_id

    def learn(self, live: Mapping[str, str]) -> None:
        """These replicas are alive."""
        owners = owners_of(len(self.owners), live)
        before = self.owners
        self.owners, self.addresses = owners, dict(live)
        moved = sum(old != new for old, new in zip(before, owners, strict=True) if old)
        MOVES.inc(moved)
        OWNED.set(owners.count(self._replica_id))
        logger.info("shards_owned", owned=owners.count(self._replica_id), replicas=len(live))
        self.tell()

    def tell(self) -> None:
        """Wake everybody who waits for a change."""
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def next_change(self) -> asyncio.Event:
        """Set by the next change. Take it before looking."""
        return self._changed


def owners_of(shards: int, replicas: Iterable[str]) -> list[str]:
    """The owner of each shard, "" for all of them if there is no replica."""
    # The first of equals wins.
    weights = [(name, _weights(name, shards)) for name in sorted(replicas, reverse=True)]
    if not weights:
        return [""] * shards
    return [max(weights, key=lambda each: each[1][shard])[0] for shard in range(shards)]


@lru_cache(maxsize=256)
def _weights(replica: str, shards: int) -> tuple[bytes, ...]:
    return tuple(
        blake2b(f"{replica}/{shard}".encode(), digest_size=8).digest() for shard in range(shards)
    )
