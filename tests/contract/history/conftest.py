"""An archive on a database of its own."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from doorcard.history.v1 import history_pb2 as pb
from doorcard.history.v1 import history_pb2_grpc
from grpc import aio

from services.history.__main__ import MIGRATIONS
from services.history.audit import AuditLog
from services.history.server import SERVICE_NAME, HistoryServicer, mail_rules
from services.history.settings import HistorySettings
from services.history.store import Archive
from services.runtime.errors import DoorcardError
from services.runtime.postgres import Database
from services.runtime.schema import upgrade
from services.runtime.server import serving
from tests import hand_records
from tests.conftest import Room
from tests.postgres import Cluster

SERVICE = ("settlement", ["service"])


@dataclass(frozen=True)
class Caller:
    """A client of the archive."""

    room: Room
    stub: "history_pb2_grpc.HistoryServiceAsyncStub"
    address: str
    """host:port."""

    async def __call__(
        self, method: str, request: Any, who: str = "anna", roles: Sequence[str] = (), **more: Any
    ) -> Any:
        """Call as `who`, a player unless `roles` says otherwise. Raises DoorcardError."""
        metadata = self.room.metadata(
            who, roles or ["player"], email=more.pop("email", ""), act_for=more.pop("act_for", ())
        )
        metadata += more.pop("headers", [])
        try:
            return await getattr(self.stub, method)(request, metadata=metadata, timeout=10)
        except aio.AioRpcError as error:
            raise DoorcardError.from_rpc(error) from None

    async def store(self, *hands: pb.HandRecord, shard: int = 1, after: int = 0) -> int:
        """Archive hands as settlement does; archived_seq."""
        entries = [hand_records.entry(after + n, hand) for n, hand in enumerate(hands, 1)]
        request = pb.StoreHandsRequest(shard=shard, epoch=1, entries=entries)
        return int((await self("StoreHands", request, *SERVICE)).archived_seq)


Start = Callable[..., AbstractAsyncContextManager[Caller]]


@pytest.fixture(scope="session")
def archive_template(postgres_cluster: Cluster) -> str:
    """A database with the archive's schema, to be copied."""
    url = postgres_cluster.create()
    upgrade(url, MIGRATIONS)
    return url


@pytest.fixture
def archive_url(postgres_cluster: Cluster, archive_template: str) -> Iterator[str]:
    """An empty archive."""
    url = postgres_cluster.create(template=archive_template)
    yield url
    postgres_cluster.drop(url)


@pytest.fixture
def archive(room: Room, archive_url: str) -> Start:
    """`async with archive() as call`: a running archive and a client of it."""

    @asynccontextmanager
    async def start(**fields: Any) -> AsyncIterator[Caller]:
        settings = room.settings(HistorySettings, history_database_url=archive_url, **fields)
        database = Database(archive_url, "history")
        servicer = HistoryServicer(Archive(database, mail_rules(settings)), AuditLog(database))

        async def register(server: aio.Server) -> Sequence[str]:
            await database.open()
            history_pb2_grpc.add_HistoryServiceServicer_to_server(servicer, server)
            return [SERVICE_NAME]

        async with (
            serving(settings, register, on_stop=database.close) as running,
            aio.insecure_channel(running.address) as channel,
        ):
            stub = history_pb2_grpc.HistoryServiceStub(channel)
            yield Caller(room, stub, running.address)

    return start
