"""Opening a shard for the first time, and finding out that Redis has lost one.

The shard's key is marked `opening` before the ledger is asked to open epoch 1. So a ledger that has
an epoch, with no key in Redis at all, can only mean that Redis lost it: the shard is closed, no
commit is taken and an alert goes out, until `reopening` has rebuilt it from the ledger.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from doorcard.wallet.v1 import wallet_pb2

from services.runtime.channels import call
from services.runtime.errors import Aborted, AlreadyExists, FailedPrecondition
from services.runtime.ids import uuid5_of
from services.table.store.store import SettingsDiffer, Store
from services.table.store.stored import ShardState

if TYPE_CHECKING:
    from doorcard.wallet.v1.wallet_pb2_grpc import WalletServiceAsyncStub

WALLET_TIMEOUT_S: Final = 1.0
WALLET_ATTEMPTS: Final = 2
FIRST_EPOCH: Final = 1


class Shards:
    """Opens the shards of a store as they are first used."""

    def __init__(self, store: Store, wallet: "WalletServiceAsyncStub") -> None:
        self._store = store
        self._wallet = wallet
        self._opening: dict[int, asyncio.Lock] = {}
        store.opener = self.ensure_open

    async def check_room(self) -> None:
        """Compare the number of shards with wallet's. Raises SettingsDiffer, Unavailable."""
        settings = await call(
            self._wallet.GetRoomSettings,
            wallet_pb2.GetRoomSettingsRequest(),
            timeout_s=WALLET_TIMEOUT_S,
            attempts=WALLET_ATTEMPTS,
        )
        if settings.shards != self._store.shards:
            raise SettingsDiffer(
                f"wallet has {settings.shards} shards, not {self._store.shards}: "
                "fixed for a room's life"
            )

    async def ensure_open(self, shard: int) -> None:
        """Open an unopened shard; leaves it closed if Redis has lost it.

        Raises Unavailable while Redis or wallet is away; it may be called again at any time.
        """
        async with self._opening.setdefault(shard, asyncio.Lock()):
            found = await self._store.shard_state(shard)
            if found is ShardState.OPEN or found.shut:
                return
            # The ledger first, then the key: an epoch that is there was preceded by the mark.
            progress = await progress_of(self._wallet, shard, WALLET_TIMEOUT_S)
            if progress.epoch:
                state = await self._store.shard_state(shard)
            else:
                state = await self._store.begin_opening(shard)
                progress = await self._open_epoch(shard)
            if state is ShardState.UNOPENED:
                await self._store.close_shard(shard, "REDIS_LOST", epoch=0)
            elif state is ShardState.OPENING:
                await self._finish(shard, progress)

    async def _finish(self, shard: int, progress: wallet_pb2.Progress) -> None:
        if progress.epoch != FIRST_EPOCH or progress.applied_seq:
            await self._store.close_shard(shard, "EPOCH_DIFFERS", epoch=0)
        else:
            await self._store.open_shard(shard, progress.epoch)

    async def _open_epoch(self, shard: int) -> wallet_pb2.Progress:
        request = wallet_pb2.OpenEpochRequest(
            request_id=uuid5_of("open epoch", shard, 0), shard=shard, expected_epoch=0
        )
        try:
            answer = await call(
                self._wallet.OpenEpoch,
                request,
                timeout_s=WALLET_TIMEOUT_S,
                attempts=WALLET_ATTEMPTS,
            )
        except (Aborted, AlreadyExists, FailedPrecondition):
            # Another replica was quicker.
            return await progress_of(self._wallet, shard, WALLET_TIMEOUT_S)
        return answer.progress


async def progress_of(
    wallet: "WalletServiceAsyncStub", shard: int, timeout_s: float
) -> wallet_pb2.Progress:
    """How far the ledger has applied a shard's outbox. Raises DoorcardError."""
    answer = await call(
        wallet.GetProgress,
        wallet_pb2.GetProgressRequest(shard=shard),
        timeout_s=timeout_s,
        attempts=WALLET_ATTEMPTS,
    )
    return answer.progress
