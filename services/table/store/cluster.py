"""The wire to a Redis Cluster: one `Line` for each primary, and the map of slots.

All keys of a shard are in one slot, so each command goes to one primary. The commands of a tick are
pipelined for each of them. MOVED changes the map, ASK sends a command on once, TRYAGAIN and
CLUSTERDOWN let it wait; each command has its patience for all that together.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from prometheus_client import Counter
from redis.crc import key_slot
from redis.exceptions import AskError, MovedError, RedisError, ResponseError

from services.runtime.listen import split_listen
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.store.connections import CONNECT_TIMEOUT_S, backoff_s, connections
from services.table.store.line import (
    TRIES_MAX,
    WAITING_MAX,
    Argument,
    Command,
    Line,
    Script,
    Wire,
    unavailable,
)
from services.table.store.subscription import Channels, OnMessage, OnSubscribed, Subscription

SCHEMES: Final = {"redis+cluster": "redis", "rediss+cluster": "rediss"}
"""Schemes of a cluster's URL, and of its nodes' own."""
LOOK_AGAIN_S: Final = 0.1
"""Pause between two looks at the map."""
SHARD_TAG: Final = "{t"
"""How the keys of a shard begin."""

REDIRECTED: Final = Counter(
    "doorcard_store_redirections",
    "Commands that a node of the store's cluster did not take, by its answer: moved, ask, wait, "
    "lost.",
    ["answer"],
    registry=REGISTRY,
)


@dataclass(frozen=True, slots=True)
class ClusterUrl:
    """redis+cluster://[user:password@]host:port[,host:port...], rediss+cluster:// with TLS.

    Raises ValueError from `of` for anything else.
    """

    head: str
    seeds: tuple[str, ...]
    tail: str

    @classmethod
    def of(cls, url: str) -> "ClusterUrl":
        """Read a URL; any of the addresses may be away."""
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES:
            raise ValueError("a cluster's URL begins with redis+cluster:// or rediss+cluster://")
        who, at, hosts = parts.netloc.rpartition("@")
        seeds = tuple(host for host in hosts.split(",") if host)
        if not seeds or parts.path.strip("/") not in ("", "0"):
            raise ValueError("a cluster's URL has one address at least, and no database")
        for seed in seeds:
            split_listen(seed)
        tail = f"?{parts.query}" if parts.query else ""
        return cls(f"{SCHEMES[parts.scheme]}://{who}{at}", seeds, tail)

    def node(self, address: str) -> str:
        """The URL of one node."""
        return f"{self.head}{address}{self.tail}"


def is_cluster(url: str) -> bool:
    """Whether a URL names a cluster."""
    return urlsplit(url).scheme in SCHEMES


class SlotMap:
    """Which primary has which slot, as a node told last."""

    def __init__(self, url: ClusterUrl) -> None:
        self.changed: list[Callable[[], None]] = []
        """Called on the loop after every change."""
        self._url = url
        self._addresses: dict[int, str] = {}
        self._known: list[str] = list(url.seeds)
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look, and look again when asked; needs a running loop."""
        self._wanted.set()
        self._task = asyncio.create_task(self._look_for_ever(), name="redis slots")

    async def close(self) -> None:
        """Look no longer."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def address_of(self, slot: int) -> str:
        """host:port of the slot's primary; "" if nobody is known to have it."""
        return self._addresses.get(slot, "")

    def addresses(self) -> set[str]:
        """All primaries that have slots."""
        return set(self._addresses.values())

    def learn(self, slot: int, address: str) -> None:
        """A node said where a slot is."""
        if self._addresses.get(slot) != address:
            self._addresses[slot] = address
            self._tell()
        self.look()

    def look(self) -> None:
        """What is known may be old."""
        self._wanted.set()

    def _tell(self) -> None:
        for tell in self.changed:
            tell()

    async def _look_for_ever(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            for address in self._candidates():
                try:
                    async with asyncio.timeout(CONNECT_TIMEOUT_S):
                        found = await self._ask(address)
                except (OSError, RedisError, TimeoutError) as error:
                    logger.info("slots_not_told", error=type(error).__name__)
                    continue
                if found:
                    changed, self._addresses = found != self._addresses, found
                    if changed:
                        self._tell()
                    break
            else:
                self._wanted.set()
            await asyncio.sleep(LOOK_AGAIN_S)

    def _candidates(self) -> list[str]:
        known = list(dict.fromkeys((*self._known, *self._url.seeds)))
        random.shuffle(known)
        return known

    async def _ask(self, address: str) -> dict[int, str]:
        connection = connections(self._url.node(address))()
        try:
            await connection.connect()  # type: ignore[no-untyped-call]
            await connection.send_command("CLUSTER", "SLOTS")
            ranges = await connection.read_response(disable_decoding=True)
        finally:
            await connection.disconnect(nowait=True)
        own_host = address.rpartition(":")[0]
        found: dict[int, str] = {}
        nodes: list[str] = []
        for first, last, *places in ranges:
            # A node that does not know its own name is where it was asked.
            named = [f"{(host or b'').decode() or own_host}:{port}" for host, port, *_ in places]
            nodes += named
            found.update(dict.fromkeys(range(first, last + 1), named[0]))
        self._known = list(dict.fromkeys(nodes))
        return found


class ClusterWire(Wire):
    """`Wire` to a cluster; the arguments are those of `Line`, for each primary."""

    def __init__(self, url: str, scripts: Sequence[Script], **line: Any) -> None:
        self._url = ClusterUrl.of(url)
        self._scripts = scripts
        self._line_arguments: Mapping[str, Any] = line
        self._patience_s = line.get("patience_s", 4.0)
        self._confirms = line.get("replicas_required", 0) > 0
        self._map = SlotMap(self._url)
        self._map.changed.append(self._remap)
        self._lines: dict[str, Line] = {}
        self._slots: dict[str, int] = {}
        self._later: dict[Command, asyncio.TimerHandle] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._open = False

    def start(self) -> None:
        self._open = True
        self._map.start()

    async def close(self) -> None:
        self._open = False
        await self._map.close()
        for command, timer in self._later.items():
            timer.cancel()
            command.fail(unavailable("STORE_AWAY"))
        self._later.clear()
        lines, self._lines = self._lines, {}
        await asyncio.gather(*self._closing, *(line.close() for line in lines.values()))

    def nodes(self) -> Sequence[str]:
        return sorted(self._map.addresses())

    def node_of(self, key: str) -> str:
        return self._map.address_of(self._slot(key))

    def ask_node(self, node: str, *command: Argument) -> "asyncio.Future[Any]":
        return self._line(node).ask_node("", *command)

    def leave(self, command: Command) -> None:
        node = self.node_of(command.key)
        if not self._open or not command.key:
            command.fail(unavailable("STORE_AWAY"))
        elif node:
            self._line(node).leave(command)
        else:
            self._map.look()
            self._wait(command)

    def subscription(self, on_message: OnMessage, on_subscribed: OnSubscribed) -> Channels:
        return ClusterSubscription(self._url, self._map, on_message, on_subscribed)

    def _slot(self, key: str) -> int:
        # Shards are asked for with every command, and are so many; rate limits are without number.
        tag = key.partition("}")[0]
        slot = self._slots.get(tag)
        if slot is None:
            slot = key_slot(f"{tag}}}".encode())
            if tag.startswith(SHARD_TAG):
                self._slots[tag] = slot
        return slot

    def _line(self, node: str) -> Line:
        line = self._lines.get(node)
        if line is None:
            line = self._lines[node] = Line(
                self._url.node(node),
                self._scripts,
                elsewhere=self._elsewhere,
                **self._line_arguments,
            )
            line.start()
        return line

    def _elsewhere(self, command: Command, error: Exception) -> None:
        """A node did not take a command."""
        command.asking = False
        if not command.key:
            command.fail(unavailable("STORE_AWAY"))
            return
        address = _address(error)
        # MovedError is an AskError too.
        if isinstance(error, MovedError) and address:
            REDIRECTED.labels("moved").inc()
            self._map.learn(error.slot_id, address)
            self.leave(command)
        elif isinstance(error, AskError) and address:
            REDIRECTED.labels("ask").inc()
            command.asking = True
            self._line(address).leave(command)
        else:
            REDIRECTED.labels("wait" if isinstance(error, ResponseError) else "lost").inc()
            self._map.look()
            self._wait(command)

    def _wait(self, command: Command) -> None:
        """Leave it again in a moment, while its patience lasts."""
        loop = asyncio.get_running_loop()
        command.pauses += 1
        pause_s = backoff_s(command.pauses)
        if len(self._later) >= WAITING_MAX:
            command.fail(unavailable("STORE_FULL"))
            return
        if command.tries >= TRIES_MAX or loop.time() + pause_s > command.give_up_at:
            command.fail(unavailable("STORE_AWAY"))
            return

        def again() -> None:
            del self._later[command]
            self.leave(command)

        self._later[command] = loop.call_later(pause_s, again)

    def _remap(self) -> None:
        """Who has no slots any more is left; what waited for him goes where it belongs now."""
        left = self._lines.keys() - self._map.addresses()
        for node in left:
            line = self._lines.pop(node)
            stranded = line.take_back()
            closing = asyncio.create_task(line.close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            for command in stranded:
                self.leave(command)


class ClusterSubscription:
    """`Subscription` over all nodes: each channel where its slot is, moved with it."""

    def __init__(
        self,
        url: ClusterUrl,
        slots: SlotMap,
        on_message: OnMessage,
        on_subscribed: OnSubscribed,
    ) -> None:
        self._url = url
        self._slots = slots
        self._on_message = on_message
        self._on_subscribed = on_subscribed
        self._places: dict[bytes, str] = {}
        """Wanted channel -> the node that it is subscribed at, "" for none."""
        self._nodes: dict[str, Subscription] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin; needs a running loop."""
        self._slots.changed.append(self._place_all)

    async def close(self) -> None:
        """Stop listening."""
        self._slots.changed.remove(self._place_all)
        nodes, self._nodes = self._nodes, {}
        await asyncio.gather(*self._closing, *(node.close() for node in nodes.values()))

    def want(self, channel: bytes) -> None:
        """Listen to a channel from soon on; `on_subscribed` says from when."""
        self._places.setdefault(channel, "")
        self._place(channel)

    def leave(self, channel: bytes) -> None:
        """Listen to it no longer."""
        node = self._nodes.get(self._places.pop(channel, ""))
        if node is not None:
            node.leave(channel)

    def listens(self, channel: bytes) -> bool:
        """Whether its node counts us among those who listen to a channel, as far as we know."""
        node = self._nodes.get(self._places.get(channel, ""))
        return node is not None and node.listens(channel)

    def _place_all(self) -> None:
        for channel in self._places:
            self._place(channel)
        for address in self._nodes.keys() - set(self._places.values()):
            closing = asyncio.create_task(self._nodes.pop(address).close())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    def _place(self, channel: bytes) -> None:
        before, now = self._places[channel], self._slots.address_of(key_slot(channel))
        if before == now or not now:
            return
        if before in self._nodes:
            self._nodes[before].leave(channel)
        self._places[channel] = now
        node = self._nodes.get(now)
        if node is None:
            connect = connections(self._url.node(now))
            node = Subscription(connect, self._on_message, self._on_subscribed, self._troubled)
            self._nodes[now] = node
            node.start()
        node.want(channel)

    def _troubled(self, error: Exception) -> None:
        address = _address(error)
        if isinstance(error, MovedError) and address:
            self._slots.learn(error.slot_id, address)
        else:
            self._slots.look()


def _address(error: Exception) -> str:
    """Where a redirection leads; "" if it does not say, or is none."""
    if isinstance(error, AskError) and error.host:
        return f"{error.host}:{error.port}"
    return ""
