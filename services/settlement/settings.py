"""Settings of the settlement's two processes, worker and beat."""

from typing import Final, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from services.runtime.listen import split_listen
from services.runtime.settings import ServiceSettings, default_address

WORKERS_MIN: Final = 3
"""Mails and the reconciler keep one child each busy at most: one is always left to drain."""
BROKER_SCHEMES: Final = ("redis://", "rediss://", "redis+socket://")


class SettlementSettings(ServiceSettings):
    """What worker and beat share, `DOORCARD_*`."""

    broker_url: SecretStr = Field(default=SecretStr(""))
    """URL of the broker, a Redis of settlement's own (`BROKER_SCHEMES`). Default from `PORTS`."""

    rpc_timeout_seconds: float = Field(default=5.0, gt=0, le=10)
    """Deadline of one call to table, wallet or history."""

    @field_validator("broker_url", mode="after")
    @classmethod
    def _default_broker(cls, value: SecretStr) -> SecretStr:
        url = value.get_secret_value() or f"redis://{default_address('broker')}/0"
        if not url.startswith(BROKER_SCHEMES):
            raise ValueError(f"must begin with one of {', '.join(BROKER_SCHEMES)}")
        return SecretStr(url)


class WorkerSettings(SettlementSettings):
    """The worker's."""

    service: str = "settlement-worker"

    worker_children: int = Field(default=WORKERS_MIN, ge=WORKERS_MIN, le=64)
    """Processes that work."""

    soft_shutdown_seconds: float = Field(default=3.0, ge=0, le=60)
    """How long running tasks may go on after SIGTERM; what is not done by then is done again."""

    drain_batch: int = Field(default=50, ge=1, le=500)
    """Entries read, applied and archived at a time."""

    confirm_seconds: float = Field(default=1.0, ge=0, le=5)
    """Between the two measurements that must agree before a difference is believed."""

    reservation_age_seconds: float = Field(default=120.0, ge=31)
    """A pending reservation older than this is put to its table; a TakeSeat lives 30 s at most."""

    smtp_address: str = ""
    """host:port of the mail server. Default from `PORTS`."""

    smtp_security: Literal["none", "starttls", "tls"] = "none"
    """How the connection to the mail server is encrypted."""

    smtp_username: str = ""
    """Empty: no authentication."""

    smtp_password: SecretStr = SecretStr("")
    """For `smtp_username`."""

    smtp_timeout_seconds: float = Field(default=5.0, gt=0, le=10)
    """For each answer of the mail server."""

    mail_from: str = Field(default="hands@doorcard.example", pattern=r"^[^@\s<>]+@[A-Za-z0-9.-]+$")
    """Sender; its domain also ends the Message-IDs."""

    @field_validator("smtp_address", mode="after")
    @classmethod
    def _default_smtp(cls, value: str) -> str:
        if not value:
            return default_address("smtp")
        split_listen(value)
        return value

    @field_validator("smtp_username", mode="after")
    @classmethod
    def _no_open_password(cls, value: str, info: ValidationInfo) -> str:
        if value and info.data.get("smtp_security") == "none":
            raise ValueError("a password goes over starttls or tls only")
        return value


class BeatSettings(SettlementSettings):
    """Beat's."""

    service: str = "settlement-beat"

    drain_every_seconds: float = Field(default=1.0, gt=0, le=60)
    """Between two triggers of every shard's drain."""

    mails_every_seconds: float = Field(default=1.0, gt=0, le=60)
    """Between two looks for mails that are due."""

    reconcile_every_seconds: float = Field(default=30.0, gt=0, le=3600)
    """Between two comparisons of every shard, of old reservations and of the whole ledger."""

    wallet_wait_seconds: float = Field(default=60.0, ge=0, le=600)
    """How long to ask wallet at start for the number of shards before giving up."""
