"""Typed settings from the environment (`DOORCARD_*`), the same for every service.

A service subclasses `ServiceSettings`, adds its own fields, and calls `load(ItsSettings)` in
`__main__`.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from services.runtime.listen import split_listen

LOOPBACK: Final = "127.0.0.1"
ENV_PREFIX: Final = "DOORCARD_"

PORTS: Final[dict[str, tuple[int, int]]] = {
    # service: (gRPC or 0 if it serves none, metrics)
    "shuffler": (7101, 9101),
    "showdown": (7102, 9102),
    "wallet": (7103, 9103),
    "history": (7104, 9104),
    "settlement-worker": (0, 9105),
    "settlement-beat": (0, 9106),
    "table": (7110, 9110),
    "table-2": (7111, 9111),
    "valkey": (7201, 0),
    "broker": (7202, 0),
    "postgres": (7203, 0),
    "smtp": (7204, 0),
}
"""Default ports, all of them; tests bind port 0."""

Addresses = Annotated[tuple[str, ...], NoDecode]
"""host:port texts, separated by commas in the environment."""


class ServiceSettings(BaseSettings):
    """What every process of the room reads from the environment; a field is `DOORCARD_<NAME>`."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        extra="ignore",
        frozen=True,
        validate_default=True,
        use_attribute_docstrings=True,
    )

    service: str = Field(default="doorcard", pattern=r"^[a-z][a-z0-9-]{0,31}$")
    """Which service this is; names it in logs, metrics and the ready file and picks its default
    ports.
    """

    listen: str = ""
    """gRPC host:port; port 0 = any free one. Default from `PORTS`, on the loopback interface."""

    metrics_listen: str = ""
    """HTTP host:port of /metrics. Default from `PORTS`, on the loopback interface."""

    ready_file: Path | None = None
    """Written when the service is up: JSON with service, pid, grpc and metrics (ports)."""

    auth_keys_file: Path | None = None
    """JSON, key id -> public Ed25519 key in PEM: whose tokens this server believes."""

    token_file: Path | None = None
    """This process's own token for calls to others; read again whenever the file changes."""

    audience: str = Field(default="doorcard", min_length=1)
    """The `aud` that tokens must carry."""

    tls_cert: Path | None = None
    """PEM certificate chain of this process; with `tls_key` it turns TLS on."""

    tls_key: Path | None = None
    """PEM private key of `tls_cert`."""

    tls_ca: Path | None = None
    """PEM certificates of those who sign our peers' certificates; alone it turns TLS on for
    clients.
    """

    tls_server_name: str = ""
    """The name servers' certificates must carry, where it is not the host of their address."""

    require_client_cert: bool = False
    """mTLS: refuse clients without a certificate signed by `tls_ca`."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least level that is logged."""

    drain_seconds: float = Field(default=10.0, ge=0, le=600)
    """How long calls in flight may go on after SIGTERM."""

    default_deadline_seconds: float = Field(default=5.0, gt=0, le=300)
    """Deadline of unary calls that bring none, received or sent."""

    time_zone: str = "UTC"
    """IANA name of the time zone of the room's days: rake is reported by them, and what a player is
    allowed once a day counts by them. A change holds from then on.
    """

    shuffler_address: str = ""
    """host:port of the shuffler. Default from `PORTS`, as of all these addresses; a name is looked
    up and the calls are spread over all that it stands for.
    """

    table_addresses: Addresses = ()
    """One name of all table replicas, or several IP addresses with ports, separated by commas."""

    showdown_address: str = ""
    """host:port of the showdown service."""

    wallet_address: str = ""
    """host:port of the wallet."""

    history_address: str = ""
    """host:port of the archive."""

    @field_validator("table_addresses", mode="before")
    @classmethod
    def _separate(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("time_zone", mode="after")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError("is no IANA time zone") from None
        return value

    @field_validator("listen", "metrics_listen", mode="after")
    @classmethod
    def _default_port(cls, value: str, info: ValidationInfo) -> str:
        if not value:
            ports = PORTS.get(info.data.get("service", ""), (0, 0))
            return f"{LOOPBACK}:{ports[info.field_name == 'metrics_listen']}"
        split_listen(value)
        return value

    @field_validator(
        "shuffler_address", "showdown_address", "wallet_address", "history_address", mode="after"
    )
    @classmethod
    def _default_address(cls, value: str, info: ValidationInfo) -> str:
        if not value:
            return default_address(str(info.field_name).removesuffix("_address"))
        split_listen(value)
        return value

    @field_validator("table_addresses", mode="after")
    @classmethod
    def _default_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for address in value:
            split_listen(address)
        return value or (default_address("table"), default_address("table-2"))

    @field_validator("tls_key", "require_client_cert", mode="after")
    @classmethod
    def _tls_whole(cls, value: Any, info: ValidationInfo) -> Any:
        if info.field_name == "tls_key" and (value is None) != (info.data.get("tls_cert") is None):
            raise ValueError("tls_cert and tls_key go together")
        needed = (info.data.get("tls_ca"), info.data.get("tls_cert"))
        if info.field_name == "require_client_cert" and value and None in needed:
            raise ValueError("needs tls_ca, tls_cert and tls_key")
        return value


def default_address(name: str) -> str:
    """Where a service of `PORTS` listens when nothing else is said."""
    return f"{LOOPBACK}:{PORTS[name][0]}"


Settings = TypeVar("Settings", bound=BaseSettings)


SECRETS_DIR: Final = f"{ENV_PREFIX}SECRETS_DIR"
"""Names a folder whose files hold variables, as secrets are mounted: file name in lower case."""


def load(kind: type[Settings]) -> Settings:
    """Read the environment, and below it the files of `SECRETS_DIR`. One line on stderr per bad
    variable, then exit status 2.
    """
    folder = os.environ.get(SECRETS_DIR)
    if folder is not None and not Path(folder).is_dir():
        print(f"{SECRETS_DIR}={folder!r}: there is no such folder", file=sys.stderr)
        raise SystemExit(2)
    try:
        return kind(_secrets_dir=folder)
    except ValidationError as error:
        for fault in error.errors(include_url=False, include_context=False):
            print(_line(kind, fault["loc"], fault["msg"]), file=sys.stderr)
        raise SystemExit(2) from None


def _line(kind: type[BaseSettings], where: tuple[int | str, ...], reason: str) -> str:
    field = str(where[0]) if where else ""
    name = f"{ENV_PREFIX}{field}".upper()
    reason = reason.removeprefix("Value error, ")
    given = next((value for key, value in os.environ.items() if key.upper() == name), None)
    if given is None:
        return f"{name}: {reason}"
    return f"{name}={_masked(kind, field, given)!r}: {reason}"


def _masked(kind: type[BaseSettings], field: str, value: str) -> str:
    """The value as given, unless it may hold a secret: a SecretStr, or a URL's password."""
    found = kind.model_fields.get(field)
    if found is not None and SecretStr in (
        found.annotation,
        *getattr(found.annotation, "__args__", ()),
    ):
        return "***"
    head, at, tail = value.rpartition("@")
    if at and "://" in head:
        return f"{head.partition('://')[0]}://***@{tail}"
    return value
