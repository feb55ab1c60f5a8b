"""The services that settlement talks to; each child connects for itself, after the fork."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from doorcard.history.v1 import history_pb2_grpc
from doorcard.table.v1 import internal_pb2_grpc
from doorcard.wallet.v1 import wallet_pb2_grpc

from services.runtime.channels import call_sync, connect_sync
from services.runtime.settings import ServiceSettings

Response = TypeVar("Response")
ATTEMPTS: Final = 2
"""Enough to pass over one replica that has just died; beyond it the next trigger comes anyway."""


class Peers:
    """Stubs of table, wallet and history. timeout_s: deadline of each call."""

    def __init__(
        self,
        tables: "internal_pb2_grpc.TableInternalServiceStub",
        wallet: "wallet_pb2_grpc.WalletServiceStub",
        history: "history_pb2_grpc.HistoryServiceStub",
        timeout_s: float,
    ) -> None:
        self.tables: Final = tables
        self.wallet: Final = wallet
        self.history: Final = history
        self.timeout_s: Final = timeout_s

    def call(self, method: Callable[..., Response], request: Any) -> Response:
        """One call, tried again once if that may help. Raises DoorcardError."""
        return call_sync(method, request, timeout_s=self.timeout_s, attempts=ATTEMPTS)


def connect_peers(settings: ServiceSettings, timeout_s: float) -> Peers:
    """Channels to the addresses in the settings."""
    return Peers(
        tables=internal_pb2_grpc.TableInternalServiceStub(
            connect_sync(settings.table_addresses, settings)
        ),
        wallet=wallet_pb2_grpc.WalletServiceStub(connect_sync(settings.wallet_address, settings)),
        history=history_pb2_grpc.HistoryServiceStub(
            connect_sync(settings.history_address, settings)
        ),
        timeout_s=timeout_s,
    )
