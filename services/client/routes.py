"""Where tables are played: the owners of shards, as the room tells them, and whom to do without."""

import asyncio
import random
import zlib
from collections.abc import Callable, Sequence
from typing import Final

import grpc
from doorcard.table.v1 import table_pb2, table_pb2_grpc

from services.runtime.shards import shard_of

SUSPECT_S: Final = 2.0
"""A replica that lost a stream is done without for so long; by then the room knows better."""
SUSPECT_MAX_S: Final = 60.0
"""One that never answers, perhaps because its address leads nowhere from here."""
GONE_S: Final = 60.0
"""A replica that the room has not named for so long has ended its streams."""
PAUSE_FIRST_S: Final = 0.05
PAUSE_MAX_S: Final = 1.0

FIRST_ANSWER_S: Final = 5.0

Dial = Callable[[str], grpc.aio.Channel]
Metadata = Sequence[tuple[str, str]]


class Routes:
    """Follows `WatchRouting` at any replica that answers.

    seeds: addresses of the room, one of the service or some of its replicas. dial(address): a
    channel; each address is dialled once. metadata: of the calls to watch, where the channels carry
    no token of their own. Use it as `async with`; any number of `RoutedPlay` may share it.
    """

    def __init__(self, seeds: Sequence[str], dial: Dial, *, metadata: Metadata = ()) -> None:
        if not seeds:
            raise ValueError("no address to begin with")
        self.changed: Final[set[Callable[[], None]]] = set()
        """Called on the loop when tables may have to move."""
        self._metadata = metadata
        self._seeds = tuple(seeds)
        self._dial = dial
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._told = table_pb2.WatchRoutingResponse()
        self._suspect_until: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        """Address -> streams in a row that came to nothing."""
        self._gone_since: dict[str, float] = {}
        """Addresses that the room names no longer."""
        self._closing: set[asyncio.Task[None]] = set()
        self._first = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Routes":
        self._task = asyncio.create_task(self._watch_for_ever(), name="routing")
        try:
            async with asyncio.timeout(FIRST_ANSWER_S):
                await self._first.wait()
        except TimeoutError:
            # Until somebody tells, the seeds are used.
            pass
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        closing = (channel.close() for channel in self._channels.values())
        await asyncio.gather(*closing, *self._closing)
        self._channels.clear()

    def channel(self, address: str) -> grpc.aio.Channel:
        """The channel to an address."""
        found = self._channels.get(address)
        if found is None:
            found = self._channels[address] = self._dial(address)
        return found

    def stub(self, table_id: str) -> "table_pb2_grpc.TableServiceAsyncStub":
        """For unary calls about a table, where it is played."""
        return table_pb2_grpc.TableServiceStub(self.channel(self.address_of(table_id)))

    def address_of(self, table_id: str) -> str:
        """The owner's address, or that of another replica while the owner is not to be had."""
        owner = self._owner_of(table_id)
        if owner and not self._is_suspect(owner):
            return owner
        alive = [each.address for each in self._told.replicas if each.address]
        choices = [each for each in alive if not self._is_suspect(each)]
        choices = choices or [each for each in self._seeds if not self._is_suspect(each)]
        choices = choices or list(self._seeds)
        # Always the same one for a table, or it would move without a reason.
        return max(choices, key=lambda address: zlib.crc32(f"{address}/{table_id}".encode()))

    def suspect(self, address: str) -> None:
        """It lost a stream, or said that it goes away."""
        if self._is_suspect(address):
            # Everybody's streams end at once.
            return
        loop = asyncio.get_running_loop()
        failures = self._failures[address] = self._failures.get(address, 0) + 1
        for_s = min(SUSPECT_MAX_S, SUSPECT_S * 2 ** min(failures - 1, 8))
        self._suspect_until[address] = loop.time() + for_s
        loop.call_later(for_s, self._tell)

    def trust(self, address: str) -> None:
        """A table was joined there."""
        self._failures.pop(address, None)

    def _owner_of(self, table_id: str) -> str:
        told = self._told
        if not told.shards:
            return ""
        owner = told.owners[shard_of(table_id, told.shards)]
        return told.replicas[owner].address if owner >= 0 else ""

    def _is_suspect(self, address: str) -> bool:
        until = self._suspect_until.get(address)
        if until is None:
            return False
        if until > asyncio.get_running_loop().time():
            return True
        del self._suspect_until[address]
        return False

    async def _watch_for_ever(self) -> None:
        failures = 0
        while True:
            address = self._any_address()
            try:
                stub = table_pb2_grpc.TableServiceStub(self.channel(address))
                watching = stub.WatchRouting(
                    table_pb2.WatchRoutingRequest(), metadata=self._metadata
                )
                async for told in watching:
                    if told.HasField("reconnect"):
                        break
                    failures = 0
                    self._take(told)
            except grpc.RpcError:
                # Whatever it is, another replica may know, or this one later.
                pass
            failures += 1
            await asyncio.sleep(pause_s(failures))

    def _any_address(self) -> str:
        alive = [each.address for each in self._told.replicas if each.address]
        choices = [each for each in (*alive, *self._seeds) if not self._is_suspect(each)]
        return random.choice(choices or self._seeds)  # noqa: S311 (no secret)

    def _take(self, told: table_pb2.WatchRoutingResponse) -> None:
        self._told = told
        self._first.set()
        self._forget_gone()
        self._tell()

    def _forget_gone(self) -> None:
        """Replicas come under new addresses for ever; of old ones nothing is kept."""
        now_s = asyncio.get_running_loop().time()
        named = {*self._seeds, *(each.address for each in self._told.replicas)}
        known = self._channels.keys() | self._failures.keys() | self._suspect_until.keys()
        gone = {each: self._gone_since.get(each, now_s) for each in known - named}
        self._gone_since = gone
        for address in [each for each, since_s in gone.items() if now_s - since_s >= GONE_S]:
            del gone[address]
            self._failures.pop(address, None)
            self._suspect_until.pop(address, None)
            channel = self._channels.pop(address, None)
            if channel is not None:
                closing = asyncio.create_task(channel.close())
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)

    def _tell(self) -> None:
        for tell in list(self.changed):
            tell()


def pause_s(failures: int) -> float:
    """Exponential and jittered, so that those whom one failure hit do not come back together."""
    ceiling_s = min(PAUSE_MAX_S, PAUSE_FIRST_S * 2 ** min(failures - 1, 8))
    return random.uniform(ceiling_s / 2, ceiling_s)  # noqa: S311 (no secret)
