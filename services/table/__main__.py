"""Starts a table replica: the store, the services it calls, the sweep, the streams.

`python -m services.table`
"""

import asyncio
import secrets
import sys
from collections.abc import Sequence
from typing import Final, NoReturn
from zoneinfo import ZoneInfo

from doorcard.showdown.v1 import showdown_pb2, showdown_pb2_grpc
from doorcard.shuffler.v1 import shuffler_pb2, shuffler_pb2_grpc
from doorcard.table.v1 import admin_pb2_grpc, internal_pb2, internal_pb2_grpc
from doorcard.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from grpc import aio

from services.runtime.batches import Batch
from services.runtime.channels import connect
from services.runtime.errors import DoorcardError
from services.runtime.gathering import Gathered
from services.runtime.listen import split_listen
from services.runtime.logs import logger
from services.runtime.sealing import SealKeys
from services.runtime.server import Step, main, run
from services.runtime.settings import load
from services.table import server as table_server
from services.table.draft.draft import Services
from services.table.limits import Limits, rates_of
from services.table.lobby.closed_tables import ClosedTables
from services.table.lobby.lobby import Lobby
from services.table.lobby.lobby_server import LobbyServer
from services.table.lobby.lobby_watching import LobbyWatching
from services.table.operators.admin_server import SERVICE_NAME as ADMIN_NAME
from services.table.operators.admin_server import TableAdminServer
from services.table.operators.creating import Creator
from services.table.operators.operators import Operators
from services.table.operators.reopened_shards import ReopenedShards
from services.table.settings import TableSettings
from services.table.shards.internal_server import TableInternalServer
from services.table.shards.outbox import Outbox
from services.table.shards.reopening import Reopening
from services.table.shards.shards import Shards
from services.table.state.state import money_of
from services.table.store.failover import Failovers
from services.table.store.store import Store
from services.table.store.store_gauges import StoreGauges
from services.table.streams.ownership import Ownership
from services.table.streams.routing import Routing
from services.table.streams.watchers import Watchers
from services.table.tables.moves import Moves
from services.table.tables.reviews import Reviews
from services.table.tables.seat_server import SeatServer
from services.table.tables.seating import Seating
from services.table.tables.sweep import Sweep
from services.table.tables.tables import Tables

WALLET_AGAIN_S: Final = 5.0
EVERY_INTERFACE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 (asked for, not bound)
DEALS: Final = Batch(shuffler_pb2.DESCRIPTOR.services_by_name["ShufflerService"], "BatchDeal")
SHOWDOWNS: Final = Batch(
    showdown_pb2.DESCRIPTOR.services_by_name["ShowdownService"], "BatchDivideShowdown"
)
RAKES: Final = Batch(wallet_pb2.DESCRIPTOR.services_by_name["WalletService"], "BatchAssessRake")
INTERNAL_NAME: Final = internal_pb2.DESCRIPTOR.services_by_name["TableInternalService"].full_name


class Replica:
    """A table replica's parts, wired."""

    def __init__(self, settings: TableSettings, keys: SealKeys) -> None:
        self.id = settings.replica_id or f"{settings.service}-{secrets.token_hex(4)}"
        self.channels = {
            name: connect(address, settings)
            for name, address in (
                ("shuffler", settings.shuffler_address),
                ("showdown", settings.showdown_address),
                ("wallet", settings.wallet_address),
            )
        }
        wallet = wallet_pb2_grpc.WalletServiceStub(self.channels["wallet"])
        services = Services(
            shuffler=Gathered(
                shuffler_pb2_grpc.ShufflerServiceStub(self.channels["shuffler"]), DEALS
            ),
            showdown=Gathered(
                showdown_pb2_grpc.ShowdownServiceStub(self.channels["showdown"]), SHOWDOWNS
            ),
            wallet=Gathered(wallet, RAKES),
        )
        self.store = Store(
            settings.table_redis_url.get_secret_value(),
            room=keys.room,
            shards=settings.shards,
            keys=keys,
            replica_id=self.id,
            replicas_required=settings.replicas_required,
        )
        self.limits = Limits(self.store.buckets, rates_of(settings.rate_limits))
        self._advertised = settings.advertise_address
        self.ownership = Ownership(self.id, settings.shards)
        self.store.heart.changed = self._replicas_changed
        self.shards = Shards(self.store, wallet)
        self.reopened = ReopenedShards(self.store)
        self.reopening = Reopening(self.store, wallet, record=self.reopened.told)
        self._wallet_checked = False
        self.outbox = Outbox(self.store, undrained_max_ms=settings.undrained_max_ms)
        self.tables = Tables(
            self.store,
            services,
            self.outbox.may_deal,
            replica_id=self.id,
            kept_max=settings.tables_kept,
            zone=ZoneInfo(settings.time_zone),
            times=settings.seat_times,
        )
        self.moves = Moves(self.store, self.tables, settings.seat_times)
        self.watchers = Watchers(
            self.store, self.tables, gateway_tick_s=settings.gateway_tick_ms / 1000
        )
        self.sweep = Sweep(
            self.store,
            self.tables.tick,
            owns=self.ownership.owns,
            interval_s=settings.sweep_interval_ms / 1000,
        )
        self.reviews = Reviews(self.store, self.tables.tick, owns=self.ownership.owns)
        self.routing = Routing(self.ownership)
        self.players = table_server.TableServer(self.store, self.tables, self.watchers, wallet)
        seating = Seating(self.store, self.tables, wallet, replica_id=self.id)
        self.seats = SeatServer(seating, self.moves)
        self.lobby = Lobby(self.store)
        self.lobby_watching = LobbyWatching(self.lobby)
        self.lobby_server = LobbyServer(self.store, self.tables, self.lobby, self.lobby_watching)
        self.operators = Operators(self.tables)
        self.admin = TableAdminServer(
            self.store,
            self.tables,
            self.operators,
            Creator(self.store, self.tables, wallet),
            self.moves,
            time_zone=settings.time_zone,
        )
        self.settlement = TableInternalServer(
            self.store, self.outbox, self.tables, self.operators, money_of
        )

    async def register(self, server: aio.Server) -> Sequence[str]:
        """Start the store and add all services.

        Raises SettingsDiffer when Redis or the wallet belongs to a room with other shards.
        """
        await self.store.start()
        await self._wallet_agrees()
        internal_pb2_grpc.add_TableInternalServiceServicer_to_server(self.settlement, server)
        admin_pb2_grpc.add_TableAdminServiceServicer_to_server(self.admin, server)
        name = table_server.register(
            server, self.players, self.seats, self.lobby_server, self.routing
        )
        return [name, INTERNAL_NAME, ADMIN_NAME]

    def bound(self, address: str) -> None:
        """The server has its port: clients may be told, if it is an address at all."""
        everywhere = split_listen(address)[0] in EVERY_INTERFACE
        self.store.heart.address = self._advertised or ("" if everywhere else address)

    @property
    def background(self) -> Sequence[Step]:
        """What runs for the life of the process."""
        return (
            self.sweep.run,
            self.reviews.run,
            self.watchers.wakes.run,
            self.lobby.run,
            self.outbox.run,
            self.admin.scheduler.run,
            StoreGauges(self.store).run,
            Failovers(self.store, self.tables.compare).run,
            self.reopening.run,
            self.reopened.run,
            ClosedTables(self.store, self.tables).run,
            self.check_wallet,
        )

    async def check_wallet(self) -> None:
        """Compare shards with a wallet that was away at the start, as soon as it answers."""
        while not self._wallet_checked:
            await asyncio.sleep(WALLET_AGAIN_S)
            await self._wallet_agrees()
        # A background task that returned would look like one that failed.
        await asyncio.Event().wait()

    async def _wallet_agrees(self) -> None:
        try:
            await self.shards.check_room()
            self._wallet_checked = True
        except DoorcardError as error:
            # Tables go on without their wallet; hands in progress do not need it.
            logger.warning("wallet_not_checked", reason=error.reason)

    async def drain(self) -> None:
        """Shards given up, streams told to connect elsewhere, no new ticks, commits finished."""
        try:
            await self.store.heart.retire()
        except DoorcardError as error:
            # Then the others find out for themselves.
            logger.info("not_retired", reason=error.reason)
        self.routing.drain()
        self.lobby_watching.drain()
        await self.watchers.drain()
        await self.sweep.stop()
        await self.moves.finished()
        await self.tables.emptied()

    def _replicas_changed(self) -> None:
        self.ownership.learn(self.store.heart.live)

    async def stop(self) -> None:
        """Close what was opened."""
        await self.store.close()
        for channel in self.channels.values():
            await channel.close()


async def serve(settings: TableSettings, keys: SealKeys) -> int:
    """Serve until a signal comes; the exit status."""
    replica = Replica(settings, keys)
    return await run(
        settings,
        replica.register,
        on_drain=replica.drain,
        background=replica.background,
        on_stop=replica.stop,
        on_bound=replica.bound,
        gate=replica.limits.admit,
    )


def start() -> NoReturn:
    """Exit status 2 for settings or a key file that are wrong."""
    settings = load(TableSettings)
    try:
        keys = SealKeys.load(settings.table_seal_keys_file)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    main(serve(settings, keys))


if __name__ == "__main__":
    start()
