"""Which shard a table belongs to: the same answer in every service, for ever."""

import zlib
from functools import lru_cache
from typing import Final

KEPT_MAX: Final = 16_384
"""Tables whose shard is not worked out again: it is asked for several times an action."""


@lru_cache(maxsize=KEPT_MAX)
def shard_of(table_id: str, shards: int) -> int:
    """0 to `shards` - 1, whatever the case of the id."""
    return zlib.crc32(table_id.lower().encode()) % shards
