"""A whole room for faults: fail points in every process, a relay on every line between two of them,
twins of services, and clocks that jump.
"""

import asyncio
import os
import signal
import time
import urllib.request
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import redis.asyncio

from services.local import supervisor
from services.local.embedded import valkey_url
from services.local.room import Room
from services.local.supervisor import Program, Supervisor, by_file
from services.runtime.ready import read_ready
from services.runtime.settings import LOOPBACK
from tests.relay import Relay, on_port

SERVERS: Final[Mapping[str, tuple[str, ...]]] = {
    "table": ("wallet", "valkey", "shuffler", "showdown"),
    "settlement-worker": ("broker", "table", "table-2", "wallet", "history"),
    "settlement-beat": ("broker", "wallet"),
    "wallet": ("postgres",),
    "history": ("postgres",),
}
"""Who calls whom; a line has a relay for each server process and serves all twins of the client."""
STEADY_S: Final = 0.2
"""Deaths that a test arranges are no reason to start a process later each time, or never again."""
LOOK_S: Final = 0.01
REACHED_S: Final = 30.0
BACK_S: Final = 60.0
FAKETIME: Final = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
"""Of Debian's libfaketime: gives Valkey another wall clock."""
WALL_CLOCK: Final = Path(__file__).parent / "wall_clock"
"""The same for Python."""
QUICK: Final = {
    "DRAIN_EVERY_SECONDS": "0.3",
    "RECONCILE_EVERY_SECONDS": "2",
    "RESERVATION_AGE_SECONDS": "31",
}
"""Settings with which what happens by and by happens within a test."""


class Lines:
    """The relays of a room. A line is a client and a server, each by its service's name."""

    def __init__(self) -> None:
        self._relays: dict[tuple[str, str], Relay] = {}
        self._targets: dict[tuple[str, str], Any] = {}

    async def open(self, stack: AsyncExitStack, room: "FaultyRoom") -> None:
        """Make all of them, before the room's processes start."""
        for client, servers in SERVERS.items():
            for server in servers:
                target = partial(_connect, room, server)
                relay = await stack.enter_async_context(on_port(target))
                self._relays[client, server] = relay
                self._targets[client, server] = target

    def through(self, room: "FaultyRoom", client: str, value: str) -> str:
        """A setting of the client with its servers' addresses turned to their relays."""
        for (from_, server), relay in self._relays.items():
            if from_ == _service(client):
                value = value.replace(room.address(server), f"{LOOPBACK}:{relay.port}")
        return value

    def pairs(self) -> list[tuple[str, str]]:
        """Every line."""
        return sorted({(client, _service(server)) for client, server in self._relays})

    def cut(self, client: str, server: str) -> None:
        """Break every connection and refuse new ones."""
        for relay, _ in self._of(client, server):
            relay.cut()

    def swallow(self, client: str, server: str) -> None:
        """Connections stay and nothing comes through."""
        for relay, _ in self._of(client, server):
            relay.hold()

    def slow(self, client: str, server: str, delay_s: float) -> None:
        """Every piece comes so much later."""
        for relay, _ in self._of(client, server):
            relay.delay_s = delay_s

    def mend(self, client: str, server: str) -> None:
        """As it was; what was swallowed comes through late."""
        for relay, target in self._of(client, server):
            relay.delay_s = 0.0
            relay.target = target
            relay.flow()

    def mend_all(self) -> None:
        """Every line is well."""
        for pair in self.pairs():
            self.mend(*pair)

    def _of(self, client: str, server: str) -> list[tuple[Relay, Any]]:
        found = [
            (relay, self._targets[key])
            for key, relay in self._relays.items()
            if (key[0], _service(key[1])) == (client, server)
        ]
        assert found, f"no line from {client} to {server}"
        return found


class FaultyRoom(Room):
    """A room whose processes can be hit.

    twins: services that run twice: wallet, settlement-worker, settlement-beat. clocks: processes
    whose wall clock can be set.
    """

    def __init__(
        self,
        home: Path,
        *,
        twins: tuple[str, ...] = (),
        clocks: tuple[str, ...] = (),
        **options: Any,
    ) -> None:
        self.points: Final = home / "points"
        self._clock_folder: Final = home / "clocks"
        for folder in (self.points, self._clock_folder):
            folder.mkdir(parents=True, exist_ok=True)
        extra = {**QUICK, "FAIL_POINTS": str(self.points), **options.pop("extra_env", {})}
        super().__init__(home, free_ports=True, extra_env=extra, **options)
        self.lines: Final = Lines()
        self._twins = twins
        self._clocks = clocks
        self._programs: dict[str, Program] = {}

    # Fail points

    def arm(self, point: str, what: str = "") -> None:
        """The next process at the point gets the signal."""
        part = self.points / f".{point}"
        part.write_text(what)
        part.rename(self.points / point)

    async def reached(self, point: str, timeout_s: float = REACHED_S) -> None:
        """Wait until a process took it."""
        end_s = time.monotonic() + timeout_s
        while (self.points / point).exists():
            assert time.monotonic() < end_s, f"nobody came by {point}"
            await asyncio.sleep(LOOK_S)

    def disarm(self) -> None:
        """Nothing is armed."""
        for each in self.points.iterdir():
            each.unlink(missing_ok=True)

    async def halted(self) -> int:
        """The process of this room that stopped itself."""
        async with asyncio.timeout(REACHED_S):
            while True:
                groups = {self.pid(name) for name in self.names()} - {0}
                for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
                    state, group = _state(pid)
                    if state == "T" and group in groups:
                        return pid
                await asyncio.sleep(LOOK_S)

    # Processes

    async def kill(self, name: str) -> None:
        """As kill -9 of the process with all its children; returns when it is dead."""
        pid = self.pid(name)
        assert pid, f"{name} does not run"
        os.killpg(pid, signal.SIGKILL)
        while self.pid(name) == pid:
            await asyncio.sleep(LOOK_S)

    async def all_run(self) -> None:
        """Every process is there again and ready."""
        async with asyncio.timeout(BACK_S):
            while not all(self.ready(name) for name in self.names()):
                await asyncio.sleep(LOOK_S)

    def ready(self, name: str) -> bool:
        """Whether it runs and answers."""
        return self._running.state(name) is supervisor.State.READY and bool(self.pid(name))

    def url(self, name: str) -> str:
        """Of the tables' Redis or the broker, past all relays."""
        return valkey_url(self._port(name), self.keys.password(name))

    async def flush(self, name: str) -> None:
        """Everything in the tables' Redis or the broker is gone."""
        async with redis.asyncio.from_url(self.url(name)) as client:
            await client.flushall()

    def metrics(self, name: str) -> str:
        """What a process says of itself, twins too."""
        found = read_ready(self.home / "run" / f"{name}.json")
        assert found is not None, f"{name} is not ready"
        with urllib.request.urlopen(f"http://{LOOPBACK}:{found.metrics}/metrics") as answer:
            return bytes(answer.read()).decode()

    # Clocks

    def set_clock(self, name: str, ahead_s: int) -> None:
        """The process's wall clock is so far ahead (or behind, below zero) from within a second."""
        part = self._clock_folder / f".{name}"
        part.write_text(f"{ahead_s:+d}\n")
        part.chmod(0o644)
        part.rename(self._clock_folder / name)

    # How it is started

    async def __aenter__(self) -> "FaultyRoom":
        await self._stack.enter_async_context(_steady())
        await self.lines.open(self._stack, self)
        await super().__aenter__()
        return self

    async def _start(self, supervisor: Supervisor) -> None:
        await super()._start(supervisor)
        await supervisor.start(*map(self._twin, self._twins))

    def _service(
        self,
        name: str,
        env: Mapping[str, str] | None = None,
        module: str = "",
        *arguments: str,
    ) -> Program:
        program = super()._service(name, env, module, *arguments)
        turned = {key: self.lines.through(self, name, value) for key, value in program.env.items()}
        program = replace(program, env={**turned, **self._clock_of(name)})
        self._programs[name] = program
        return program

    def _valkey(self, name: str) -> Program:
        program = super()._valkey(name)
        return replace(program, env={**program.env, **self._clock_of(name)})

    def _twin(self, name: str) -> Program:
        """A second process of the service; of the wallet, at the same address."""
        ready_file = self.home / "run" / f"{name}-2.json"
        ready_file.unlink(missing_ok=True)
        original = self._programs[name]
        own = {
            "DOORCARD_READY_FILE": str(ready_file),
            "DOORCARD_METRICS_LISTEN": f"{LOOPBACK}:0",
        }
        return replace(
            original, name=f"{name}-2", ready=by_file(ready_file), env={**original.env, **own}
        )

    def _clock_of(self, name: str) -> dict[str, str]:
        if name not in self._clocks:
            return {}
        self.set_clock(name, 0)
        file = str(self._clock_folder / name)
        if name not in ("valkey", "broker"):
            return {"PYTHONPATH": str(WALL_CLOCK), "WALL_CLOCK_FILE": file}
        return {
            "LD_PRELOAD": str(FAKETIME),
            "FAKETIME_TIMESTAMP_FILE": file,
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }


@asynccontextmanager
async def _steady() -> AsyncIterator[None]:
    with patch.object(supervisor, "STEADY_S", STEADY_S):
        yield


async def _connect(
    room: FaultyRoom, server: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = room.address(server).rpartition(":")
    return await asyncio.open_connection(host, int(port))


def _service(name: str) -> str:
    """Without the number of a replica or twin."""
    return name.removesuffix("-2")


def _state(pid: int) -> tuple[str, int]:
    """State and process group, from "PID (NAME) STATE PPID PGRP ..." (proc(5))."""
    with suppress(OSError, IndexError, ValueError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return words[0], int(words[2])
    return "", 0
