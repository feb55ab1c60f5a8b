"""The whole room on one machine: which processes it has, how they find each other, in which order.

Databases first, then the services without peers, then those that call them. Everything lives in one
data folder: data, keys, logs, mail and `room.json`, which tells clients where the services are.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Final

from services.local import room_file
from services.local.embedded import (
    create_databases,
    postgres_program,
    postgres_url,
    valkey_program,
    valkey_url,
)
from services.local.keys import RoomKeys
from services.local.lock import home_lock
from services.local.ports import HeldPorts
from services.local.supervisor import Change, Program, Supervisor, by_file
from services.runtime.auth import TokenSigner
from services.runtime.settings import LOOPBACK, PORTS

SHARDS: Final = 8
TABLE_REPLICAS: Final = ("table", "table-2")
DATABASES: Final = ("wallet", "history")
STORES: Final = ("valkey", "broker", "postgres")
CALLERS: Final = (*TABLE_REPLICAS, "settlement-worker", "settlement-beat")
"""Processes that call others and so need a token."""
METRICS: Final = tuple(name for name, (_, metrics) in PORTS.items() if metrics)


def home_folder() -> Path:
    """The data folder: `DOORCARD_HOME`, by default `.room` where one stands."""
    return Path(os.environ.get("DOORCARD_HOME", ".room")).absolute()


class Room:
    """A room, running while its context lasts.

    home: the data folder; what it holds is used again. free_ports: take any free ports instead of
    the default ones. extra_env: more `DOORCARD_*` settings for every service. shuffler: the module
    that shuffles, and its arguments. python: the interpreter that runs the services. Entering
    raises HomeInUseError, or StartFailedError with the last lines of the process that would not
    start.
    """

    def __init__(
        self,
        home: Path,
        *,
        free_ports: bool = False,
        on_change: Callable[[Change], None] = lambda _change: None,
        on_wait: Callable[[float], None] = lambda _wait_s: None,
        extra_env: Mapping[str, str] | None = None,
        shuffler: Sequence[str] = ("services.shuffler",),
        python: str = sys.executable,
    ) -> None:
        self.home: Final = home
        self.mail_folder: Final = home / "mail"
        self._free_ports = free_ports
        self._on_change = on_change
        self._on_wait = on_wait
        self._extra_env = dict(extra_env or {})
        self._shuffler = tuple(shuffler)
        self._python = python
        self._ports: dict[str, tuple[int, int]] = {}
        self._stack = AsyncExitStack()
        self._supervisor: Supervisor | None = None
        self._keys: RoomKeys | None = None

    async def __aenter__(self) -> "Room":
        try:
            lock = await self._stack.enter_async_context(
                home_lock(self.home, on_wait=self._on_wait)
            )
            held = HeldPorts()
            self._stack.callback(held.release)
            self._ports = {name: self._hold(held, name) for name in PORTS}
            self._keys = RoomKeys(self.home / "keys")
            self._keys.mint_tokens(CALLERS)
            self._supervisor = await self._stack.enter_async_context(
                Supervisor(self.home / "logs", on_change=self._told, inherit=(lock,))
            )
            await self._start(self._supervisor)
            refreshing = asyncio.create_task(self.keys.keep_tokens_fresh(CALLERS))
            self._stack.callback(refreshing.cancel)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        room_file.remove(self.home)
        await self._stop()

    @property
    def keys(self) -> RoomKeys:
        """The room's keys."""
        if self._keys is None:
            raise RuntimeError("the room was not entered")
        return self._keys

    @property
    def signer(self) -> TokenSigner:
        """Makes tokens that the room's services believe."""
        return self.keys.signer

    @property
    def table_addresses(self) -> tuple[str, ...]:
        """host:port of each table replica."""
        return tuple(self.address(name) for name in TABLE_REPLICAS)

    def address(self, name: str) -> str:
        """host:port of a service's gRPC, or of a database; empty where there is none."""
        port = self._ports[name][0]
        return f"{LOOPBACK}:{port}" if port else ""

    def metrics_url(self, name: str) -> str:
        """Where a process's metrics are read; empty where there are none."""
        port = self._ports[name][1]
        return f"http://{LOOPBACK}:{port}/metrics" if port else ""

    def table_metrics(self) -> list[tuple[str, int, str]]:
        """(name, process id, metrics URL) of the table replicas that run now."""
        return [
            (name, self.pid(name), self.metrics_url(name))
            for name in TABLE_REPLICAS
            if self.pid(name)
        ]

    def pid(self, name: str) -> int:
        """Process id of `name`; 0 between two lives."""
        return self._running.pid(name)

    def restarts(self) -> dict[str, int]:
        """Processes that were started again, and how often."""
        supervisor = self._running
        counted = {name: supervisor.restarts(name) for name in supervisor.names()}
        return {name: count for name, count in counted.items() if count}

    def names(self) -> list[str]:
        """All processes, in the order of their start."""
        return self._running.names()

    @property
    def _running(self) -> Supervisor:
        if self._supervisor is None:
            raise RuntimeError("the room was not entered")
        return self._supervisor

    async def _stop(self) -> None:
        """Stop everything; who cancels this meanwhile is heard when nothing is left running."""
        stopping = asyncio.create_task(self._stack.aclose())
        cancelled = False
        while not stopping.done():
            try:
                await asyncio.wait({stopping})
            except asyncio.CancelledError:
                cancelled = True
        stopping.result()
        if cancelled:
            raise asyncio.CancelledError

    async def _start(self, supervisor: Supervisor) -> None:
        (self.home / "run").mkdir(exist_ok=True)
        # Connection URLs hold these passwords: they stay in the environment of their own service.
        superuser = self.keys.password("postgres")
        passwords = {name: self.keys.password(name) for name in DATABASES}
        await supervisor.start(
            self._valkey("valkey"),
            self._valkey("broker"),
            await postgres_program(
                "postgres", self.home / "postgres", self._port("postgres"), superuser
            ),
        )
        await create_databases(
            postgres_url(self._port("postgres"), "postgres", superuser, "postgres"), passwords
        )
        await supervisor.start(
            self._service("shuffler", self._shuffler_env(), *self._shuffler),
            self._service("showdown"),
            self._service("wallet", self._database_env("wallet", passwords)),
            self._service("history", self._database_env("history", passwords)),
            self._mail_sink(),
        )
        await supervisor.start(
            *(self._service(name, self._table_env(), "services.table") for name in TABLE_REPLICAS),
            *(
                self._service(
                    f"settlement-{part}", self._settlement_env(), "services.settlement", part
                )
                for part in ("worker", "beat")
            ),
        )
        self._write_room()

    def _service(
        self,
        name: str,
        env: Mapping[str, str] | None = None,
        module: str = "",
        *arguments: str,
    ) -> Program:
        ready_file = self.home / "run" / f"{name}.json"
        ready_file.unlink(missing_ok=True)
        grpc, metrics = self._ports[name]
        settings = {
            "SERVICE": name,
            "METRICS_LISTEN": f"{LOOPBACK}:{metrics}",
            "READY_FILE": str(ready_file),
            "AUTH_KEYS_FILE": str(self.keys.auth_keys_file),
            "SHUFFLER_ADDRESS": self.address("shuffler"),
            "SHOWDOWN_ADDRESS": self.address("showdown"),
            "WALLET_ADDRESS": self.address("wallet"),
            "HISTORY_ADDRESS": self.address("history"),
            "TABLE_ADDRESSES": ",".join(self.table_addresses),
            "SHARDS": str(SHARDS),
            **({"LISTEN": f"{LOOPBACK}:{grpc}"} if grpc else {}),
            **({"TOKEN_FILE": str(self.keys.token_file(name))} if name in CALLERS else {}),
            **(env or {}),
            **self._extra_env,
        }
        command = (self._python, "-m", module or f"services.{name}", *arguments)
        named = {f"DOORCARD_{key}": value for key, value in settings.items()}
        return Program(name, command, by_file(ready_file), env=named)

    def _valkey(self, name: str) -> Program:
        # Losing the broker's last second costs a trigger; losing the tables' costs money.
        fsync = "always" if name == "valkey" else "everysec"
        password = self.keys.password(name)
        folder = self.home / name
        return valkey_program(name, folder, self._port(name), password, appendfsync=fsync)

    def _mail_sink(self) -> Program:
        async def ready(_pid: int) -> bool:
            try:
                _, writer = await asyncio.open_connection(LOOPBACK, self._port("smtp"))
            except OSError:
                return False
            writer.close()
            return True

        module = "services.local.mail_sink"
        command = (sys.executable, "-m", module, self.address("smtp"), str(self.mail_folder))
        return Program("smtp", command, ready)

    def _shuffler_env(self) -> dict[str, str]:
        return {
            "SHUFFLER_SEAL_KEYS_FILE": str(self.keys.seal_keys_file("shuffler")),
            "SHUFFLER_RECEIPT_KEYS_FILE": str(self.keys.receipt_keys_file()),
        }

    def _table_env(self) -> dict[str, str]:
        return {
            "TABLE_REDIS_URL": valkey_url(self._port("valkey"), self.keys.password("valkey")),
            "TABLE_SEAL_KEYS_FILE": str(self.keys.seal_keys_file("table")),
        }

    def _settlement_env(self) -> dict[str, str]:
        return {
            "BROKER_URL": valkey_url(self._port("broker"), self.keys.password("broker")),
            "SMTP_ADDRESS": self.address("smtp"),
        }

    def _database_env(self, name: str, passwords: Mapping[str, str]) -> dict[str, str]:
        url = postgres_url(self._port("postgres"), name, passwords[name], name)
        return {f"{name.upper()}_DATABASE_URL": url}

    def _port(self, name: str) -> int:
        return self._ports[name][0]

    def _hold(self, held: HeldPorts, name: str) -> tuple[int, int]:
        grpc, metrics = (0, 0) if self._free_ports else PORTS[name]
        serves_grpc, serves_metrics = map(bool, PORTS[name])
        if name in {"valkey", "broker", "postgres"}:
            return held.for_database(grpc), 0
        return (
            held.for_service(grpc) if serves_grpc else 0,
            held.for_service(metrics) if serves_metrics else 0,
        )

    def _told(self, change: Change) -> None:
        if self._supervisor is not None and room_file.is_there(self.home):
            self._write_room()
        self._on_change(change)

    def _write_room(self) -> None:
        content = {
            "tables": self.table_addresses,
            "services": {
                name: self.address(name)
                for name in ("shuffler", "showdown", "wallet", "history", *TABLE_REPLICAS)
            },
            "metrics": {name: self.metrics_url(name) for name in METRICS},
            "stores": {name: self.address(name) for name in STORES},
            "pids": {name: self.pid(name) for name in self.names()},
        }
        room_file.write(self.home, content)
