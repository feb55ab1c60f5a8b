"""WatchRouting: clients learn which replica owns which shard, and where they reach it."""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from doorcard.table.v1 import table_pb2
from prometheus_client import Gauge

from services.runtime.auth import current_caller
from services.runtime.metrics import REGISTRY
from services.table.streams import reconnecting
from services.table.streams.ownership import Ownership
from services.table.streams.per_caller import PerCaller, opener

if TYPE_CHECKING:
    from grpc.aio import ServicerContext

    Context = ServicerContext[Any, Any]

WATCHING_MAX: Final = 20_000
WATCHING_PER_CALLER_MAX: Final = 8

WATCHING: Final = Gauge(
    "doorcard_routing_watchers", "Clients that watch the routing here.", registry=REGISTRY
)


class Routing:
    """The streams of `WatchRouting`."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._watching = 0
        self._opened = PerCaller("streams of the routing")
        self._draining = asyncio.Event()

    async def WatchRouting(  # noqa: N802 (gRPC's names)
        self, _request: table_pb2.WatchRoutingRequest, _context: "Context"
    ) -> AsyncIterator[table_pb2.WatchRoutingResponse]:
        if self._watching >= WATCHING_MAX or self._draining.is_set():
            raise reconnecting.full()
        with self._opened.one_more(opener(current_caller()), WATCHING_PER_CALLER_MAX):
            self._watching += 1
            WATCHING.set(self._watching)
            try:
                while not self._draining.is_set():
                    changed = self._ownership.next_change
                    yield routes(self._ownership)
                    await changed.wait()
                yield table_pb2.WatchRoutingResponse(reconnect=reconnecting.reconnect())
            finally:
                self._watching -= 1
                WATCHING.set(self._watching)

    def drain(self) -> None:
        """Tell everybody to ask another replica."""
        self._draining.set()
        self._ownership.tell()


def routes(ownership: Ownership) -> table_pb2.WatchRoutingResponse:
    """The owners as a message."""
    names = sorted(ownership.addresses)
    place = {name: at for at, name in enumerate(names)}
    return table_pb2.WatchRoutingResponse(
        shards=len(ownership.owners),
        replicas=[
            table_pb2.ReplicaRoute(replica_id=name, address=ownership.addresses[name])
            for name in names
        ],
        owners=[place.get(owner, -1) for owner in ownership.owners],
    )
