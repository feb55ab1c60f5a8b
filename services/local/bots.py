"""Players that play by themselves over the public API: seats, `Play` streams, cash-outs.

A bot knows only what its own stream shows it. `RoutedPlay` keeps that stream where the table is
owned, and sees to what is lost when a server goes away.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar
from uuid import uuid4

import grpc
from doorcard.game.v1 import game_pb2
from doorcard.history.v1 import history_pb2, history_pb2_grpc
from doorcard.table.v1 import table_pb2, table_pb2_grpc
from doorcard.wallet.v1 import wallet_pb2, wallet_pb2_grpc

from services.client import RoutedPlay, Routes
from services.runtime.channels import call
from services.runtime.errors import DoorcardError

Kind = game_pb2.ActionKind

CALL_TIMEOUT_S: Final = 5.0
TRIES_MAX: Final = 40
BACKOFF_S: Final = 0.1
LATENCIES_KEPT: Final = 100_000
Answer = TypeVar("Answer")


@dataclass(slots=True)
class Tally:
    """What the bots of one demo did, counted by themselves."""

    deposits: int = 0
    """Minor units."""
    withdrawals: int = 0
    """Minor units."""
    actions: int = 0
    """Actions that were accepted."""
    refusals: dict[str, int] = field(default_factory=dict)
    """Refused actions by reason; a late action is a fair reason."""
    streams: int = 0
    """`Play` streams that were opened."""
    hands_seen: set[str] = field(default_factory=set)
    mails_asked: int = 0
    latencies_s: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES_KEPT))
    """From sending an action to its answer, retries included."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a bot reaches the room. Channels attach no token of their own."""

    tables: tuple[grpc.aio.Channel, ...]
    """One for each table replica, for what may be asked of any of them."""
    routes: Routes
    """For play, which all bots share."""
    wallet: grpc.aio.Channel
    history: grpc.aio.Channel
    operator_token: str


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    """Call metadata that carries a token."""
    return (("authorization", f"Bearer {token}"),)


async def insist(method: Callable[..., Awaitable[Answer]], request: Any, token: str) -> Answer:
    """The answer, tried again while the room says that the fault is passing; bounded."""
    return await call(
        method, request, timeout_s=CALL_TIMEOUT_S, attempts=TRIES_MAX, metadata=bearer(token)
    )


class Bot:
    """One player at one table, from deposit to withdrawal."""

    def __init__(
        self,
        player_id: str,
        token: str,
        access: Access,
        tally: Tally,
        rng: random.Random,
        *,
        think_s: float = 0.01,
        mail_every: int = 0,
    ) -> None:
        """`mail_every`: ask for every n-th of the own hands by e-mail; 0 for none."""
        self.player_id = player_id
        self._token = token
        self._access = access
        self._tally = tally
        self._rng = rng
        self._think_s = think_s
        self._mail_every = mail_every
        self._hands_own = 0
        self._leaving = asyncio.Event()

    def leave(self) -> None:
        """Leave the table when the hand allows it."""
        self._leaving.set()

    async def run(self, table_id: str, buy_in: int, currency: str) -> None:
        """Buy in, play until told to leave, cash out and withdraw what is left.

        A bot that lost its stack leaves, deposits again and takes a new seat.
        """
        while not self._leaving.is_set():
            await self._deposit(buy_in, currency)
            seat = await self._take_seat(table_id, buy_in)
            if seat is None:
                break
            await self._sit(table_id, seat)
            await self._leave_seat(table_id)
        await self._withdraw_all(currency)

    async def _deposit(self, amount: int, currency: str) -> None:
        stub = wallet_pb2_grpc.WalletServiceStub(self._access.wallet)
        request = wallet_pb2.DepositRequest(
            request_id=str(uuid4()),
            player_id=self.player_id,
            amount=amount,
            currency=currency,
            reference="bot",
        )
        await insist(stub.Deposit, request, self._access.operator_token)
        self._tally.deposits += amount

    async def _take_seat(self, table_id: str, buy_in: int) -> int | None:
        request = table_pb2.TakeSeatRequest(
            request_id=str(uuid4()), table_id=table_id, buy_in=buy_in
        )
        try:
            answer = await insist(self._any_table().TakeSeat, request, self._token)
        except DoorcardError as fault:
            if fault.reason in {"TABLE_FULL", "TABLE_CLOSED"}:
                return None
            raise
        return answer.seat

    async def _leave_seat(self, table_id: str) -> None:
        request = table_pb2.LeaveSeatRequest(request_id=str(uuid4()), table_id=table_id)
        try:
            answer = await insist(self._any_table().LeaveSeat, request, self._token)
        except DoorcardError as fault:
            if fault.reason == "NOT_SEATED":
                return
            raise
        while not answer.left:
            await asyncio.sleep(BACKOFF_S)
            again = table_pb2.GetTableRequest(table_id=table_id)
            view = await insist(self._any_table().GetTable, again, self._token)
            if all(seat.player_id != self.player_id for seat in view.table.seats):
                return

    async def _withdraw_all(self, currency: str) -> None:
        """Withdraw once the table's money is back: the cash-out travels through the outbox."""
        stub = wallet_pb2_grpc.WalletServiceStub(self._access.wallet)
        for _ in range(600):
            balance = await self._balance(stub, currency)
            if balance.pending == 0 and balance.in_play == 0:
                break
            await asyncio.sleep(BACKOFF_S)
        if balance.available == 0:
            return
        request = wallet_pb2.WithdrawRequest(
            request_id=str(uuid4()),
            player_id=self.player_id,
            amount=balance.available,
            currency=currency,
            reference="bot",
        )
        await insist(stub.Withdraw, request, self._access.operator_token)
        self._tally.withdrawals += request.amount

    async def _balance(
        self, stub: "wallet_pb2_grpc.WalletServiceAsyncStub", currency: str
    ) -> wallet_pb2.Balance:
        answer = await insist(stub.GetBalance, wallet_pb2.GetBalanceRequest(), self._token)
        found = [each for each in answer.balances if each.currency == currency]
        return found[0] if found else wallet_pb2.Balance(currency=currency)

    async def _sit(self, table_id: str, seat: int) -> None:
        """Play until told to leave, or broke."""
        sight = Sight(self.player_id, seat)
        leaving = asyncio.ensure_future(self._leaving.wait())
        routes, metadata = self._access.routes, bearer(self._token)
        try:
            async with RoutedPlay(routes, metadata=metadata) as play:
                await play.join(table_id)
                while not self._is_done(sight):
                    frame = await self._next(play, sight, leaving)
                    if frame is not None:
                        self._see(sight, frame)
                    if sight.my_turn is not None:
                        await self._act(play, table_id, sight, sight.my_turn)
                self._tally.streams += play.streams_opened
        finally:
            leaving.cancel()

    def _is_done(self, sight: "Sight") -> bool:
        return sight.gone or (not sight.in_hand and (sight.broke or self._leaving.is_set()))

    async def _next(
        self, play: RoutedPlay, sight: "Sight", leaving: "asyncio.Future[Literal[True]]"
    ) -> table_pb2.PlayResponseFrame | None:
        """What comes next; None when the bot is to leave between hands."""
        reading = asyncio.ensure_future(play.read())
        waited: set[asyncio.Future[Any]] = {reading} if sight.in_hand else {reading, leaving}
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            reading.cancel()
            return None
        return reading.result()

    async def _act(
        self, play: RoutedPlay, table_id: str, sight: "Sight", turn: table_pb2.Turn
    ) -> None:
        sight.my_turn = None
        if sight.acted == (sight.hand_id, turn.turn):
            # It was told again, with a new deadline.
            return
        sight.acted = (sight.hand_id, turn.turn)
        if self._think_s:
            await asyncio.sleep(self._rng.uniform(0, 2 * self._think_s))
        action = choose(turn.legal, self._rng)
        began_s = time.perf_counter()
        try:
            await play.act(table_id, sight.hand_id, turn.turn, action)
        except DoorcardError as error:
            if error.retriable:
                raise
            self._tally.refusals[error.reason] = self._tally.refusals.get(error.reason, 0) + 1
        else:
            self._tally.actions += 1
            self._tally.latencies_s.append(time.perf_counter() - began_s)

    def _see(self, sight: "Sight", frame: table_pb2.PlayResponseFrame) -> None:
        for hand_id in sight.see(frame):
            self._tally.hands_seen.add(hand_id)
            self._hands_own += 1
            if self._mail_every and self._hands_own % self._mail_every == 0:
                self._ask_mail(hand_id)

    def _ask_mail(self, hand_id: str) -> None:
        self._tally.mails_asked += 1
        task = asyncio.get_running_loop().create_task(self._request_mail(hand_id))
        _ASKING.add(task)
        task.add_done_callback(_ASKING.discard)

    async def _request_mail(self, hand_id: str) -> None:
        stub = history_pb2_grpc.HistoryServiceStub(self._access.history)
        request = history_pb2.RequestHandEmailRequest(request_id=str(uuid4()), hand_id=hand_id)
        await insist(stub.RequestHandEmail, request, self._token)

    def _any_table(self) -> "table_pb2_grpc.TableServiceAsyncStub":
        return table_pb2_grpc.TableServiceStub(self._rng.choice(self._access.tables))


_ASKING: Final[set[asyncio.Task[None]]] = set()


async def mails_are_asked() -> None:
    """Wait until every request for a mail that bots began has been taken."""
    while _ASKING:
        await asyncio.gather(*_ASKING)


class Sight:
    """What a bot has seen of its table."""

    def __init__(self, player_id: str, seat: int) -> None:
        self.player_id = player_id
        self.seat = seat
        self.hand_id = ""
        self.in_hand = False
        self.my_turn: table_pb2.Turn | None = None
        self.acted = ("", 0)
        """The hand and turn it has acted for."""
        self.stack: int | None = None
        self.gone = False

    @property
    def broke(self) -> bool:
        """Nothing left between hands."""
        return self.stack == 0 and not self.in_hand

    def see(self, frame: table_pb2.PlayResponseFrame) -> list[str]:
        """Take in a snapshot or an update; the ids of own hands that ended in it."""
        if frame.HasField("snapshot"):
            return self._snapshot(frame.snapshot)
        ended: list[str] = []
        for event in frame.update.events:
            self._event(event, ended)
        return ended

    def _snapshot(self, view: table_pb2.TableView) -> list[str]:
        ended = [self.hand_id] if self.in_hand and view.hand.hand_id != self.hand_id else []
        mine = [seat for seat in view.seats if seat.player_id == self.player_id]
        self.gone = not mine
        self.hand_id = view.hand.hand_id
        dealt_in = {each.seat for each in view.hand.seats if not each.folded}
        self.in_hand = self.seat in dealt_in
        turn = view.hand.turn
        self.my_turn = turn if view.hand.HasField("turn") and turn.seat == self.seat else None
        self.stack = mine[0].stack if mine else None
        return ended

    def _event(self, event: table_pb2.TableEvent, ended: list[str]) -> None:
        kind = event.WhichOneof("event")
        if kind == "hand_started":
            self.hand_id = event.hand_started.hand_id
            self.in_hand = self.seat in event.hand_started.seats
        elif kind == "turn":
            self.my_turn = event.turn if event.turn.seat == self.seat else None
        elif kind == "hand_ended":
            if self.in_hand:
                ended.append(event.hand_ended)
            self.in_hand = False
            self.my_turn = None
        elif kind == "seat_changed" and event.seat_changed.seat.player_id == self.player_id:
            self.stack = event.seat_changed.seat.stack
        elif kind == "seat_freed" and event.seat_freed.player_id == self.player_id:
            self.gone = True


def choose(legal: game_pb2.LegalActions, rng: random.Random) -> game_pb2.Action:
    """A loose, passive player's choice among the legal actions: many hands see a showdown."""
    if legal.wagers and rng.random() < 0.15:
        return game_pb2.Action(kind=legal.wager_kind, amount=rng.choice(legal.wagers))
    if legal.bring_in:
        return game_pb2.Action(kind=Kind.ACTION_KIND_BRING_IN)
    if legal.check:
        return game_pb2.Action(kind=Kind.ACTION_KIND_CHECK)
    if legal.call and rng.random() < 0.75:
        return game_pb2.Action(kind=Kind.ACTION_KIND_CALL)
    return game_pb2.Action(kind=Kind.ACTION_KIND_FOLD)
