"""A wallet for tables, which keeps reservations in memory and takes a twentieth of every pot. It
speaks the contract as far as tables need it.

    python -m bench.stage.wallet
"""

from collections.abc import Sequence

from doorcard.wallet.v1 import wallet_pb2_grpc
from grpc import aio

from services.runtime.server import main, run
from services.runtime.settings import ServiceSettings, load
from tests.contract.table.replicas import WalletServer


async def register(server: aio.Server) -> Sequence[str]:
    """The one service."""
    wallet = WalletServer()  # type: ignore[abstract]  # tables need no more of it
    wallet_pb2_grpc.add_WalletServiceServicer_to_server(wallet, server)
    return []


if __name__ == "__main__":
    main(run(load(ServiceSettings), register))
