"""A table as an operator sees it: everything that he needs, and no card that is not open to all.

What is shown of a running hand is the public view; beside it stand only names, numbers and times.
"""

from doorcard.table.v1 import admin_pb2, table_pb2

from services.runtime.clock import timestamp
from services.table.draft import money
from services.table.state import due, views
from services.table.state.state import Seat, Table


def inspect(table: Table, shard: int, undrained_ms: int) -> admin_pb2.InspectTableResponse:
    """Everything of a table but cards. undrained_ms: of its shard's outbox."""
    blob = table.blob
    shown = admin_pb2.InspectTableResponse(
        table=views.view(table, views.PUBLIC),
        shard=shard,
        reason=blob.pause_reason,
        waits_for=blob.waits_for,
        tries=blob.tries,
        seats=[_seat(number, seat) for number, seat in sorted(blob.seats.items())],
        reservations=[
            admin_pb2.InspectedReservation(
                reservation_id=money.text_of(reservation),
                seated=each.seated,
                at=timestamp(each.at_ms),
                applied=bool(each.applied_ms),
            )
            for reservation, each in blob.remembered.items()
        ],
        undrained_ms=undrained_ms,
        renewals=blob.hand.renewals if blob.hand is not None else 0,
    )
    if blob.after_hand is not None:
        shown.after_hand = table_pb2.TableState.ValueType(blob.after_hand)
    due_ms = due.next_ms(table)
    if due_ms:
        shown.due.CopyFrom(timestamp(due_ms))
    if blob.waits_for:
        shown.waits_since.CopyFrom(timestamp(blob.waits_since_ms))
    return shown


def _seat(number: int, seat: Seat) -> admin_pb2.InspectedSeat:
    return admin_pb2.InspectedSeat(
        seat=number,
        player_id=seat.player_id,
        sitting_id=seat.sitting_id,
        reservation_id=seat.reservation_id,
        brought=seat.brought,
        connection=seat.connection,
        held_reservation_id=money.text_of(seat.held.reservation) if seat.held else "",
    )
