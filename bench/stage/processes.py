"""The processes of a bench: Valkey, table replicas, what these call, and the bare floor.

All on free ports of the loopback interface, in a temporary folder; none outlives the bench.
"""

import sys
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

from services.local.embedded import valkey_program, valkey_url
from services.local.keys import RoomKeys
from services.local.load.run import UNLIMITED
from services.local.ports import HeldPorts
from services.local.supervisor import Program, Supervisor, by_file
from services.runtime.ready import read_ready
from services.runtime.settings import LOOPBACK
from tests.contract.table.replicas import SHARDS

SELDOM_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Server:
    """A process that serves gRPC."""

    pid: int
    address: str
    """host:port."""


@dataclass(frozen=True, slots=True)
class Room:
    """A Valkey, which syncs every write, a wallet, and the first table replica."""

    name: str
    redis_url: str
    wallet: Server
    first: Server


class Stage:
    """Where rooms are put up, while its context lasts."""

    def __init__(self) -> None:
        self._stack: Final = AsyncExitStack()
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="doorcard-bench-"))
        self._folder: Final = Path(folder)
        self.keys: Final = RoomKeys(self._folder / "keys")
        self._supervisor: Final = Supervisor(self._folder / "logs")
        self._ports: Final = HeldPorts()

    async def __aenter__(self) -> "Stage":
        self._stack.callback(self._ports.release)
        await self._stack.enter_async_context(self._supervisor)
        self.keys.mint_tokens(["table"])
        await self._start("shuffler", "services.shuffler", self._shuffler_settings())
        await self._start("showdown", "services.showdown", {"SERVICE": "showdown"})
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def room(self, name: str, *, appendfsync: str = "always") -> Room:
        """A room of its own, without tables. appendfsync: of its Valkey."""
        port = self._ports.for_database()
        password = self.keys.password(name)
        valkey = f"valkey-{name}"
        await self._supervisor.start(
            valkey_program(valkey, self._folder / valkey, port, password, appendfsync=appendfsync)
        )
        url = valkey_url(port, password)
        wallet = await self._start(f"wallet-{name}", "bench.stage.wallet", {"SERVICE": "wallet"})
        first = await self._replica(f"table-{name}", url, wallet, {})
        return Room(name, url, wallet, first)

    async def second_replica(self, room: Room) -> Server:
        """Another replica of a room, which leaves deadlines to the first."""
        name = f"table-{room.name}-2"
        seldom = {"SWEEP_INTERVAL_MS": str(SELDOM_MS)}
        return await self._replica(name, room.redis_url, room.wallet, seldom)

    async def floor(self, room: Room, **sizes: int) -> Server:
        """The bare floor on a room's Valkey; sizes as `bench.stage.floor` names them."""
        settings = {f"FLOOR_{name.upper()}": str(size) for name, size in sizes.items()}
        return await self._start(
            "floor", "bench.stage.floor", {"FLOOR_REDIS_URL": room.redis_url, **settings}
        )

    async def _replica(
        self, name: str, redis_url: str, wallet: Server, more: Mapping[str, str]
    ) -> Server:
        return await self._start(
            name,
            "services.table",
            {
                "SERVICE": "table",
                "REPLICA_ID": name,
                "TOKEN_FILE": str(self.keys.token_file("table")),
                "TABLE_REDIS_URL": redis_url,
                "TABLE_SEAL_KEYS_FILE": str(self.keys.seal_keys_file("table")),
                "SHUFFLER_ADDRESS": self._address("shuffler"),
                "SHOWDOWN_ADDRESS": self._address("showdown"),
                "WALLET_ADDRESS": wallet.address,
                "SHARDS": str(SHARDS),
                # No ledger drains this room.
                "UNDRAINED_MAX_MS": str(24 * 3600 * 1000),
                **UNLIMITED,
                **more,
            },
        )

    def _shuffler_settings(self) -> dict[str, str]:
        return {
            "SERVICE": "shuffler",
            "SHUFFLER_SEAL_KEYS_FILE": str(self.keys.seal_keys_file("shuffler")),
            "SHUFFLER_RECEIPT_KEYS_FILE": str(self.keys.receipt_keys_file()),
        }

    async def _start(self, name: str, module: str, settings: Mapping[str, str]) -> Server:
        ready_file = self._folder / f"{name}.json"
        variables = {
            "LISTEN": f"{LOOPBACK}:0",
            "METRICS_LISTEN": f"{LOOPBACK}:0",
            "READY_FILE": str(ready_file),
            "AUTH_KEYS_FILE": str(self.keys.auth_keys_file),
            "LOG_LEVEL": "error",
            **settings,
        }
        command = (sys.executable, "-m", module)
        named = {f"DOORCARD_{key}": value for key, value in variables.items()}
        await self._supervisor.start(Program(name, command, by_file(ready_file), env=named))
        return Server(self._supervisor.pid(name), self._address(name))

    def _address(self, name: str) -> str:
        ready = read_ready(self._folder / f"{name}.json")
        if ready is None:
            raise RuntimeError(f"{name} was never ready")
        return f"{LOOPBACK}:{ready.grpc}"
