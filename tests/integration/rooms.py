"""Whole rooms for tests: the `doorcard` command as a process, and a room kept by the test itself.

Both give a `Client`, which knows what any client knows: addresses from `room.json`, and tokens that
the room's key signs.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import grpc
from doorcard.table.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    internal_pb2_grpc,
    table_pb2,
    table_pb2_grpc,
)
from doorcard.wallet.v1 import wallet_pb2, wallet_pb2_grpc

from services.local.keys import RoomKeys
from services.local.room import Room
from services.local.supervisor import Change
from services.runtime.channels import call, connect
from services.runtime.settings import ENV_PREFIX, ServiceSettings

BIN: Final = Path(sys.executable).parent
MARK: Final = "ROOM_UNDER_TEST"
"""Variable in the environment of a command under test, and so of everything that it starts."""
UP_S: Final = 90.0
PATIENCE_S: Final = 30.0
STOP_S: Final = 45.0
LOOK_S: Final = 0.05
TRIES_MAX: Final = 20
Result = TypeVar("Result")


@contextmanager
def new_home() -> Iterator[Path]:
    """A data folder for the life of the block.

    Not below pytest's own folders: when the tests run as root, PostgreSQL runs as another user, and
    every run of pytest closes those to others anew.
    """
    with tempfile.TemporaryDirectory(prefix="doorcard-home-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


class Command:
    """`doorcard ...` with `home` as its data folder, in a session of its own as at a terminal."""

    def __init__(self, home: Path, *arguments: str) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home: Final = home
        self._mark = uuid4().hex
        self._output = home / f"{arguments[0]}-{self._mark[:8]}.out"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [str(BIN / "doorcard"), *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def environment(self) -> dict[str, str]:
        """For programs that are to find this room, and the command itself."""
        plain = {key: value for key, value in os.environ.items() if not key.startswith(ENV_PREFIX)}
        path = os.pathsep.join((str(BIN), plain.get("PATH", os.defpath)))
        return {**plain, "PATH": path, "DOORCARD_HOME": str(self.home), MARK: self._mark}

    def output(self) -> str:
        """What it has printed."""
        return self._output.read_text(encoding="utf-8", errors="replace")

    def until(self, done: Callable[[], Result | None], timeout_s: float = UP_S) -> Result:
        """The first true answer of `done`, asked while the command runs."""
        late_s = time.monotonic() + timeout_s
        while not (answer := done()):
            assert self._process.poll() is None, f"it ended: {self.output()}"
            assert time.monotonic() < late_s, f"it did not happen: {self.output()}"
            time.sleep(LOOK_S)
        return answer

    def until_up(self) -> "Places":
        """Where everything is, as soon as everything runs."""
        return Places(self.home, self.until(lambda: _written(self.home / "room.json")))

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """As Ctrl-C does at a terminal: to the command's own process group."""
        os.killpg(self._process.pid, number)

    def wait(self, timeout_s: float = STOP_S) -> int:
        """Exit status."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end: {self.output()}") from None

    def stop(self) -> int:
        """Ctrl-C, and the exit status."""
        self.interrupt()
        return self.wait()

    def left_running(self) -> list[str]:
        """Command lines of the processes that came from this command and still run."""
        return [_command_line(pid) for pid in self._own_pids()]

    def close(self) -> None:
        """End it if it still runs; whatever would be left is killed."""
        try:
            if self._process.poll() is None:
                self.stop()
        finally:
            for pid in self._own_pids():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()

    def _own_pids(self) -> list[int]:
        wanted = f"{MARK}={self._mark}".encode()
        return [pid for pid in _pids() if wanted in _environment(pid)]


@contextmanager
def command(home: Path, *arguments: str) -> Iterator[Command]:
    """A command for the life of the block."""
    running = Command(home, *arguments)
    try:
        yield running
    finally:
        running.close()


class Places:
    """What `room.json` says, and tokens for this room."""

    def __init__(self, home: Path, content: dict[str, Any]) -> None:
        self.home: Final = home
        self.tables: Final[list[str]] = content["tables"]
        self.services: Final[dict[str, str]] = content["services"]
        self.metrics: Final[dict[str, str]] = content["metrics"]
        self.signer: Final = RoomKeys(home / "keys").signer

    @classmethod
    def of(cls, home: Path) -> "Places":
        """Of the room that runs in this data folder."""
        content = _written(home / "room.json")
        assert content is not None, "no room runs there"
        return cls(home, content)

    def token(
        self, subject: str, roles: Iterable[str] = ("player",), ttl_s: float = 600, **more: Any
    ) -> str:
        """A token of this room."""
        return self.signer.mint(subject, roles, ttl_s, **more)

    def listening(self) -> list[str]:
        """Those of the room's addresses where something still answers."""
        urls = [urlsplit(url).netloc for url in self.metrics.values()]
        return [each for each in [*self.services.values(), *urls] if _answers(each)]


class Client:
    """Stubs of a room, and the steps that most tests begin with."""

    def __init__(self, places: Places) -> None:
        self.places: Final = places
        # Away for a moment is no reason to sit out gRPC's own long backoff.
        settings = ServiceSettings(service="test")
        self._channels = [connect(address, settings) for address in places.tables]
        self._wallet = connect(places.services["wallet"], settings)
        self.tables: Final = [table_pb2_grpc.TableServiceStub(each) for each in self._channels]
        self.admin: Final = admin_pb2_grpc.TableAdminServiceStub(self._channels[0])
        self.internal: Final = internal_pb2_grpc.TableInternalServiceStub(self._channels[0])
        self.wallet: Final = wallet_pb2_grpc.WalletServiceStub(self._wallet)

    async def close(self) -> None:
        """Close the channels."""
        for channel in (*self._channels, self._wallet):
            await channel.close()

    def bearer(
        self, subject: str, roles: Iterable[str] = ("player",), **more: Any
    ) -> list[tuple[str, str]]:
        """Call metadata with a token."""
        return [("authorization", f"Bearer {self.places.token(subject, roles, **more)}")]

    @property
    def operator(self) -> list[tuple[str, str]]:
        """Call metadata of an operator."""
        return self.bearer("olga", ("operator",))

    async def ask(
        self, method: Callable[..., Awaitable[Result]], request: Any, metadata: Any
    ) -> Result:
        """The answer, asked again while the room says that the fault is passing."""
        return await call(method, request, timeout_s=5.0, attempts=TRIES_MAX, metadata=metadata)

    async def create_table(self, **fields: Any) -> str:
        """A table for play money where nobody is hurried; its id."""
        asked = {
            "request_id": str(uuid4()),
            "name": "Table one",
            "rulebook": "club",
            "stake_name": "5/10",
            "seats": 6,
            "currency": "XTS",
            "action_ms": 300_000,
            "hand_pause_ms": 20,
            **fields,
        }
        request = table_pb2.CreateTableRequest(**asked)
        answer = await self.ask(self.tables[0].CreateTable, request, self.operator)
        return answer.table.config.table_id

    async def deposit(self, player_id: str, amount: int = 200, currency: str = "XTS") -> None:
        """Money for a player."""
        request = wallet_pb2.DepositRequest(
            request_id=str(uuid4()), player_id=player_id, amount=amount, currency=currency
        )
        await self.ask(self.wallet.Deposit, request, self.operator)

    async def sit_down(
        self, table_id: str, players: Iterable[str], currency: str = "XTS"
    ) -> dict[str, int]:
        """Seats them from seat 0 on, with 200 each, and only then lets the first hand begin."""
        pause = admin_pb2.TableAdminServicePauseTableRequest(
            request_id=str(uuid4()), table_id=table_id, reason="all sit down first"
        )
        await self.ask(self.admin.PauseTable, pause, self.operator)
        taken = {}
        for seat, player in enumerate(players):
            await self.deposit(player, currency=currency)
            request = table_pb2.TakeSeatRequest(
                request_id=str(uuid4()), table_id=table_id, seat=seat, buy_in=200
            )
            answer = await self.ask(self.tables[0].TakeSeat, request, self.bearer(player))
            taken[player] = answer.seat
        resume = admin_pb2.TableAdminServiceResumeTableRequest(
            request_id=str(uuid4()), table_id=table_id
        )
        await self.ask(self.admin.ResumeTable, resume, self.operator)
        return taken

    async def view(self, table_id: str, viewer: str = "", at: int = 0) -> table_pb2.TableView:
        """The table as a player sees it, or as everybody does."""
        metadata = self.bearer(viewer) if viewer else self.operator
        request = table_pb2.GetTableRequest(table_id=table_id)
        return (await self.ask(self.tables[at].GetTable, request, metadata)).table

    async def until(
        self,
        table_id: str,
        done: Callable[[table_pb2.TableView], Any],
        viewer: str = "",
        timeout_s: float = PATIENCE_S,
    ) -> table_pb2.TableView:
        """The view in which something is so; looks again whenever the table says anything."""
        request = table_pb2.WatchTableRequest(table_id=table_id)
        async with asyncio.timeout(timeout_s):
            while True:
                watching = self.tables[0].WatchTable(request, metadata=self.operator)
                try:
                    while await watching.read() is not grpc.aio.EOF:
                        view = await self.view(table_id, viewer)
                        if done(view):
                            return view
                finally:
                    watching.cancel()

    async def tables_in_play(self) -> dict[str, int]:
        """Table id -> hands dealt there, of those where hands were dealt."""
        request = table_pb2.ListTablesRequest(page_size=200)
        answer = await self.ask(self.tables[0].ListTables, request, self.operator)
        return {each.config.table_id: each.hands for each in answer.tables if each.hands}

    async def turn(self, table_id: str) -> table_pb2.TableView:
        """The public view as soon as somebody is to act."""
        return await self.until(table_id, lambda view: view.hand.HasField("turn"))

    async def act(
        self, view: table_pb2.TableView, player_id: str, action: Any, at: int = 0, **changes: Any
    ) -> int:
        """A player's action for the turn in `view`; the version that took it."""
        request = act_request(view, action, **changes)
        metadata = self.bearer(player_id)
        return (await self.ask(self.tables[at].Act, request, metadata)).version


@asynccontextmanager
async def client(places: Places) -> AsyncIterator[Client]:
    """A client for the life of the block."""
    opened = Client(places)
    try:
        yield opened
    finally:
        await opened.close()


async def until(ask: Callable[[], Awaitable[Result]], timeout_s: float = PATIENCE_S) -> Result:
    """The first true answer."""
    async with asyncio.timeout(timeout_s):
        while not (answer := await ask()):
            await asyncio.sleep(LOOK_S)
    return answer


class Hosted:
    """A room whose supervisor is the test itself; its loop turns only while `run` does."""

    def __init__(self, home: Path) -> None:
        self.home: Final = home
        self.changes: Final[list[Change]] = []
        # Like the command, on asyncio's own loop: see `Supervisor`.
        self._runner = asyncio.Runner()
        self._stack = contextlib.AsyncExitStack()

    def start(self, **options: Any) -> Room:
        """Start the room."""
        return self.enter(
            Room(self.home, free_ports=True, on_change=self.changes.append, **options)
        )

    def enter(self, room: Room) -> Room:
        """Start a room of one's own."""
        return self.run(self._stack.enter_async_context(room))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run something beside the room."""
        return self._runner.run(work)

    def story(self, name: str) -> str:
        """What became of a process, and the end of its log."""
        told = [f"{each.state} {each.detail}" for each in self.changes if each.name == name]
        log = (self.home / "logs" / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join([f"{name}: {', '.join(told)}", *log[-20:]])

    def close(self) -> None:
        """Stop everything."""
        try:
            self.run(self._stack.aclose())
        finally:
            self._runner.close()


def act_request(view: table_pb2.TableView, action: Any, **changes: Any) -> table_pb2.ActRequest:
    """An action for the turn in `view`, but for `changes`."""
    fields = {
        "request_id": str(uuid4()),
        "table_id": view.config.table_id,
        "hand_id": view.hand.hand_id,
        "turn": view.hand.turn.turn,
        **changes,
    }
    return table_pb2.ActRequest(action=action, **fields)


def player_to_act(view: table_pb2.TableView) -> str:
    """Id of the player whose turn it is."""
    return next(seat.player_id for seat in view.seats if seat.seat == view.hand.turn.seat)


def _written(path: Path) -> dict[str, Any] | None:
    """A JSON object's content; None while there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    assert isinstance(content, dict)
    return content


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as connection:
        connection.settimeout(1.0)
        return connection.connect_ex((host, int(port))) == 0


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _environment(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def _command_line(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return f"process {pid}"
