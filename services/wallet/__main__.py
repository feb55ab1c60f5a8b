"""`python -m services.wallet`: how the wallet is put together."""

from collections.abc import Sequence

from doorcard.wallet.v1 import wallet_pb2_grpc
from grpc import aio

from services.runtime.server import main, run
from services.runtime.settings import load
from services.wallet.opening import LedgerDatabase
from services.wallet.schedules import FOLDER, Schedules
from services.wallet.server import SERVICE_NAME, WalletServicer
from services.wallet.settings import WalletSettings
from services.wallet.upkeep import Upkeep


async def serve(settings: WalletSettings) -> int:
    """Run until a signal comes."""
    ledger = LedgerDatabase(settings)
    own = settings.wallet_schedules_folder
    schedules = Schedules(FOLDER, own) if own else Schedules()
    servicer = WalletServicer(ledger, schedules, settings)
    upkeep = Upkeep(
        ledger, every_s=settings.wallet_seal_every_seconds, time_zone=settings.time_zone
    )

    async def register(server: aio.Server) -> Sequence[str]:
        wallet_pb2_grpc.add_WalletServiceServicer_to_server(servicer, server)
        return [SERVICE_NAME]

    return await run(settings, register, background=[ledger.open, upkeep.run], on_stop=ledger.close)


if __name__ == "__main__":
    main(serve(load(WalletSettings)))
