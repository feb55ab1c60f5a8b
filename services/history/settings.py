"""The archive's own settings."""

from pydantic import Field, SecretStr

from services.runtime.settings import ServiceSettings


class HistorySettings(ServiceSettings):
    """The environment of the archive, `DOORCARD_*`."""

    service: str = "history"

    history_database_url: SecretStr
    """libpq URL of the archive's own database."""

    history_connections_max: int = Field(default=8, ge=1, le=100)
    """Connections of this process to the database."""

    email_attempts_max: int = Field(default=24, ge=1, le=100)
    """Tries after which a mail is given up; with the backoff below, most of a day."""

    email_backoff_seconds: float = Field(default=15.0, gt=0, le=3600)
    """Before the second try; doubled for each further one."""

    email_backoff_max_seconds: float = Field(default=3600.0, gt=0, le=86_400)
    """Longest pause between two tries."""

    email_hand_wait_seconds: float = Field(default=3600.0, gt=0, le=604_800)
    """How long a request waits for a hand that is not in the archive."""

    email_requests_per_hour: int = Field(default=120, ge=1, le=100_000)
    """Requests of one player in any hour."""

    email_requests_per_hour_and_address: int = Field(default=1200, ge=1, le=1_000_000)
    """Requests from one network address in an hour, for each process of the archive."""
