"""What tables ask of the wallet about money that is set aside for a seat."""

from typing import Final

from doorcard.wallet.v1 import wallet_pb2

from services.runtime.channels import call
from services.table.draft.draft import Wallet

TIMEOUT_S: Final = 2.0
ATTEMPTS: Final = 2


async def reserve(
    wallet: Wallet, request: wallet_pb2.ReserveBuyInRequest
) -> wallet_pb2.Reservation:
    """Set money aside, unless that was done before. Raises DoorcardError."""
    made: wallet_pb2.ReserveBuyInResponse = await call(
        wallet.ReserveBuyIn, request, timeout_s=TIMEOUT_S, attempts=ATTEMPTS
    )
    return made.reservation


async def find(wallet: Wallet, reservation_id: str) -> wallet_pb2.Reservation:
    """The reservation as the ledger has it. Raises DoorcardError, NotFound
    (RESERVATION_UNKNOWN).
    """
    found: wallet_pb2.GetReservationResponse = await call(
        wallet.GetReservation,
        wallet_pb2.GetReservationRequest(reservation_id=reservation_id),
        timeout_s=TIMEOUT_S,
        attempts=ATTEMPTS,
    )
    return found.reservation
