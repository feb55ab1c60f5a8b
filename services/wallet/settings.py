"""What the wallet reads from the environment."""

from pathlib import Path

from pydantic import Field, SecretStr

from services.runtime.settings import LOOPBACK, PORTS, ServiceSettings


class WalletSettings(ServiceSettings):
    """`DOORCARD_*`, besides what every service reads."""

    service: str = Field(default="wallet", pattern=r"^[a-z][a-z0-9-]{0,31}$")

    wallet_database_url: SecretStr = SecretStr(
        f"postgresql://postgres@{LOOPBACK}:{PORTS['postgres'][0]}/wallet"
    )
    """libpq connection string of the ledger's database."""

    wallet_connections_max: int = Field(default=8, ge=1, le=100)
    """At most this many, per process."""

    wallet_database_wait_seconds: float = Field(default=1.0, gt=0, le=30)
    """How long a call waits for the database before it is UNAVAILABLE."""

    wallet_schedules_folder: Path | None = None
    """Folder of the house's own rake schedules (TOML), beside the shipped ones."""

    shards: int = Field(default=8, ge=1, le=16_384)
    """Shards of the room, fixed for its life; another number than the ledger's is refused."""

    wallet_seal_every_seconds: float = Field(default=2.0, gt=0, le=60)
    """Between two rounds of sealing what was written and auditing balances."""
