"""Tables whose money is not as the ledger has it are paused, for an operator to look at."""

from typing import Final

from doorcard.table.v1 import internal_pb2

from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.settlement import meters
from services.settlement.peers import Peers

PARKED: Final = "an entry of this table could not be applied to the ledger"


def pause(peers: Peers, table_id: str, reason: str, request_id: str) -> None:
    """Pause a table. One that cannot be is counted and logged: the reconciler sees in its next
    round what is wrong with it.
    """
    request = internal_pb2.PauseTableRequest(
        request_id=request_id, table_id=table_id, reason=reason
    )
    try:
        peers.call(peers.tables.PauseTable, request)
    except DoorcardError as error:
        meters.FAULTS.labels("pause", error.reason).inc()
        logger.error("table_not_paused", table=table_id, reason=error.reason)
