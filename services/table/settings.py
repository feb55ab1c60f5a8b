"""The table service's own settings."""

from pathlib import Path

from pydantic import Field, SecretStr, field_validator

from services.runtime.listen import split_listen
from services.runtime.settings import ServiceSettings
from services.table.limits import rates_of
from services.table.state.times import STANDARD, SeatTimes


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

    gateway_tick_ms: int = Field(default=0, ge=0, le=10)
    """How long a gateway's stream that carries 4,000 frames a second or more waits for what else
    can be written at once; 0 writes as soon as the last message is out.
    """

    tables_kept: int = Field(default=4096, ge=1)
    """Decoded tables that are kept in memory."""

    seat_offer_ms: int = Field(default=STANDARD.offer_ms, ge=1000, le=3_600_000)
    """A free seat is kept for who is next on the waiting list."""

    table_change_ms: int = Field(default=STANDARD.move_ms, ge=1000, le=3_600_000)
    """A seat is kept for who has left another table for it."""

    hand_elsewhere_ms: int = Field(default=STANDARD.hand_elsewhere_ms, ge=1000, le=3_600_000)
    """A seat is kept at most so long for who still plays a hand at the table that he leaves."""

    ante_confirmation_ms: int = Field(default=STANDARD.ante_ms, ge=1000, le=60_000)
    """A player who confirms each ante has so long; the next hand waits for him."""

    sit_out_max_ms: int = Field(default=STANDARD.away_ms, ge=0)
    """Who sits out for longer loses his seat, and his stack goes back; 0 for never."""

    no_chips_max_ms: int = Field(default=STANDARD.broke_ms, ge=0)
    """Who has no chips for longer loses his seat; 0 for never."""

    missed_hands_max: int = Field(default=STANDARD.missed_max, ge=0)
    """Who misses so many hands in a row loses his seat, and his stack goes back; 0 for never."""

    rejoin_ms: int = Field(default=STANDARD.rejoin_ms, ge=0)
    """Who left with more than the least buy-in, and comes back to the table sooner than this, has
    to bring what he left with; 0 for no such rule.
    """

    rate_limits: str = ""
    """Limits other than the standard ones, as tokens a second and tokens of a full bucket, or off:
    `seats.player=2/60, lobby.address=off`. Kinds: seats, streams, lobby, calls; for a player, an
    address or a table.
    """

    @field_validator("rate_limits")
    @classmethod
    def _are_limits(cls, value: str) -> str:
        rates_of(value)
        return value

    @property
    def seat_times(self) -> SeatTimes:
        """The times around seats."""
        return SeatTimes(
            offer_ms=self.seat_offer_ms,
            move_ms=self.table_change_ms,
            hand_elsewhere_ms=self.hand_elsewhere_ms,
            ante_ms=self.ante_confirmation_ms,
            away_ms=self.sit_out_max_ms,
            broke_ms=self.no_chips_max_ms,
            missed_max=self.missed_hands_max,
            rejoin_ms=self.rejoin_ms,
        )

    @field_validator("advertise_address")
    @classmethod
    def _can_be_split(cls, value: str) -> str:
        if value:
            split_listen(value)
        return value
