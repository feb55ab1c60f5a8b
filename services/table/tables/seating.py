"""Money on its way to a seat, and the waiting list: what needs more than the table's own turn.

The ledger sets the money aside before the command joins the table's mailbox. Whatever then refuses
it gives it back by a commit, so that it is neither lost nor taken twice.
"""

from dataclasses import replace
from typing import Final

from doorcard.wallet.v1 import wallet_pb2

from services.runtime import failpoints
from services.runtime.clock import monotonic_s
from services.runtime.errors import AlreadyExists, DoorcardError, NotFound
from services.table.draft import money
from services.table.draft.draft import Draft, Wallet
from services.table.hands import reservations, seats, topups, waiting
from services.table.hands.seats import Sitter
from services.table.hands.topups import TopUp
from services.table.state.state import Table, digest
from services.table.store.store import Store
from services.table.store.stored import check_epoch
from services.table.tables import reserving
from services.table.tables.tables import Tables

FORGET_FROM: Final = 16
"""Remembered reservations from which a new one makes us look which can be forgotten."""


class Seating:
    """Seats of one replica's tables. Everything raises NotFound (TABLE_UNKNOWN), what the wallet
    raises, and what a commit raises.
    """

    def __init__(self, store: Store, tables: Tables, wallet: Wallet, *, replica_id: str) -> None:
        self._store = store
        self._tables = tables
        self._wallet = wallet
        self._replica_id = replica_id

    async def take_seat(
        self,
        table_id: str,
        player_id: str,
        name: str,
        request_id: str,
        *,
        number: int | None,
        buy_in: int,
    ) -> tuple[int, int, str]:
        """Reserve the buy-in and sit down: (seat, version, sitting id)."""
        began_s = monotonic_s()
        sitting = money.sitting_of(player_id, table_id, request_id)
        reservation = money.reservation_of(player_id, table_id, request_id)
        here = self._tables.has_stream(table_id, player_id)
        sitter = Sitter(
            player_id=player_id,
            name=name,
            number=number,
            buy_in=buy_in,
            sitting=sitting.bytes,
            reservation=reservation.bytes,
            asked=digest(request_id, (number, buy_in)),
            began_s=began_s,
            pending=False,
            connection=self._replica_id if here else "",
        )
        table = await self._read(table_id, player_id)
        seated = seats.seated_at(table, sitter)
        if seated is not None:
            await self._store.confirm(table_id)
            return seated, table.version, str(sitting)
        error = seats.refusal(table, sitter, self._store.now_ms())
        if error is not None:
            raise error
        failpoints.reach("buy_in.asked")
        state = await self._reserve(table, player_id, str(reservation), str(sitting), buy_in)
        failpoints.reach("buy_in.answered")
        pending = state == wallet_pb2.RESERVATION_STATE_PENDING
        reserved, asked_at = replace(sitter, pending=pending), table.version

        async def change(draft: Draft) -> tuple[int, int] | DoorcardError:
            check_epoch(asked_at, draft.table.version)
            taken = await seats.take(draft, reserved)
            return taken if isinstance(taken, DoorcardError) else (taken, draft.version_after)

        taken = await self._tables.change(table_id, player_id, "take_seat", change)
        failpoints.reach("buy_in.seated")
        if isinstance(taken, DoorcardError):
            raise taken
        return (*taken, str(sitting))

    async def top_up(
        self, table_id: str, player_id: str, request_id: str, amount: int
    ) -> tuple[int, int]:
        """Add chips to the player's seat: (version, chips that wait for the next deal)."""
        reservation = money.top_up_of(player_id, table_id, request_id)
        top_up = TopUp(player_id, amount, reservation.bytes, monotonic_s())
        table = await self._read(table_id, player_id)
        waits = topups.known(table, top_up)
        if waits is not None:
            return table.version, waits
        error = topups.refusal(table, top_up)
        if error is not None:
            # The ledger never forgets: what came into play long ago is not refused now.
            if await self._came_into_play(str(reservation), amount):
                return table.version, topups.IN_PLAY
            raise error
        seat = table.blob.seats[seats.number_of(table, player_id)]
        sitting, asked_at = seat.sitting_id, table.version
        failpoints.reach("top_up.asked")
        state = await self._reserve(table, player_id, str(reservation), sitting, amount)
        failpoints.reach("top_up.answered")
        reserved = replace(top_up, state=state)

        async def change(draft: Draft) -> tuple[int, int] | DoorcardError:
            check_epoch(asked_at, draft.table.version)
            held = await topups.take(draft, reserved, sitting)
            return held if isinstance(held, DoorcardError) else (draft.version_after, held)

        held = await self._tables.change(table_id, player_id, "top_up", change)
        failpoints.reach("top_up.held")
        if isinstance(held, DoorcardError):
            raise held
        return held

    async def join_waiting_list(self, table_id: str, player_id: str, name: str) -> tuple[int, int]:
        """Wait for a seat: (version, place; 0 with an offer)."""

        async def change(draft: Draft) -> tuple[int, int]:
            place = await waiting.join(draft, player_id, name)
            return draft.version_after, place

        return await self._tables.change(table_id, player_id, "join_waiting_list", change)

    async def leave_waiting_list(self, table_id: str, player_id: str) -> int:
        """Wait no longer, or decline the offer; the version at which it holds."""

        async def change(draft: Draft) -> int:
            return await waiting.leave(draft, player_id)

        return await self._tables.change(table_id, player_id, "leave_waiting_list", change)

    async def _read(self, table_id: str, player_id: str) -> Table:
        """The table, with room for one more reservation to remember if that can be made."""
        table = await self._tables.read(table_id)
        if len(table.blob.remembered) < FORGET_FROM:
            return table

        async def change(draft: Draft) -> None:
            # A table where nobody plays has no ticks that would do it.
            age_ms = await self._tables.undrained_age_ms(table_id)
            draft.changed = reservations.forget(draft.table, draft.now_ms, age_ms)

        await self._tables.change(table_id, player_id, "forget", change)
        return await self._tables.read(table_id)

    async def _reserve(
        self, table: Table, player_id: str, reservation: str, sitting: str, amount: int
    ) -> wallet_pb2.ReservationState.ValueType:
        """Set the money aside, unless that was done before; the reservation's state."""
        made = await reserving.reserve(
            self._wallet,
            wallet_pb2.ReserveBuyInRequest(
                reservation_id=reservation,
                player_id=player_id,
                table_id=table.table_id,
                sitting_id=sitting,
                amount=amount,
                currency=table.blob.config.currency,
            ),
        )
        return made.state

    async def _came_into_play(self, reservation: str, amount: int) -> bool:
        """Whether a top-up was taken, as the ledger knows it. Raises AlreadyExists (ID_REUSED)."""
        try:
            found = await reserving.find(self._wallet, reservation)
        except NotFound:
            return False
        if found.state != wallet_pb2.RESERVATION_STATE_COMMITTED:
            return False
        if found.amount != amount:
            raise AlreadyExists("ID_REUSED", "this request id was used for another amount")
        return True
