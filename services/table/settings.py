"""The table service's own settings."""

from pathlib import Path

from pydantic import Field, SecretStr, field_validator

from services.runtime.listen import split_listen
from services.runtime.settings import ServiceSettings


class TableSettings(ServiceSettings):
    """The environment of a table replica, `DOORCARD_*`."""

    service: str = Field(default="table", pattern=r"^[a-z][a-z0-9-]{0,31}$")

    table_redis_url: SecretStr
    """Where the tables are kept: redis://, rediss:// or unix://; of a Redis Cluster some of its
    nodes, redis+cluster://host:port,host:port, or rediss+cluster:// with TLS.
    """

    replicas_required: int = Field(default=0, ge=0, le=8)
    """How many of Redis' replicas must have a commit before it is answered (WAIT); 0 asks none."""

    advertise_address: str = ""
    """host:port where clients reach this very replica; by default the address it listens on, and
    none where it listens on every interface: then clients know it by the service's name only.
    """

    table_seal_keys_file: Path
    """Keys that tables are sealed with (`runtime.sealing.SealKeys.load`); they name the room."""

    shards: int = Field(default=8, ge=1, le=16_384)
    """Fixed for the life of the room, and the same at the wallet."""

    replica_id: str = Field(default="", pattern=r"^[A-Za-z0-9._-]{0,64}$")
    """Names this process among the replicas; by default the service's name and a random part."""

    sweep_interval_ms: int = Field(default=100, ge=5, le=10_000)
    """Mean pause between two passes over the deadlines."""

    undrained_max_ms: int = Field(default=60_000, ge=1000)
    """No new hand begins on a shard whose oldest entry the ledger has not applied for so long."""

    tables_kept: int = Field(default=4096, ge=1)
    """Decoded tables that are kept in memory."""

    @field_validator("advertise_address")
    @classmethod
    def _can_be_split(cls, value: str) -> str:
        if value:
            split_listen(value)
        return value
