"""What goes on in a room while it is hit: a visit from deposit to withdrawal, and a hand.

Every request is sent until it is answered and then once more with the same id, to another replica
where there is one; the second answer must be the first.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar
from uuid import UUID

from doorcard.table.v1 import table_pb2
from doorcard.wallet.v1 import wallet_pb2

from services.runtime.channels import call
from tests.choices import passive
from tests.integration.rooms import Client, act_request, player_to_act

CURRENCY: Final = "XTS"
DEPOSIT: Final = 3000
BUY_IN: Final = 2000
TOP_UP: Final = 500
BANKROLL: Final = 8000
CALL_S: Final = 5.0
TRIES_MAX: Final = 60
LOOK_S: Final = 0.05
HAND_STEPS_MAX: Final = 80

Answer = TypeVar("Answer")


class Life:
    """Players of one room; ids and choices come from a seed."""

    def __init__(self, at: Client, rng: random.Random) -> None:
        self.at: Final = at
        self.held: Final[Counter[str]] = Counter()
        """Deposits less withdrawals by currency."""
        self.doubled = 0
        """Requests that were sent twice."""
        self.hands = 0
        self._rng = rng

    def new_id(self) -> str:
        """An id for a request or a player."""
        return str(UUID(int=self._rng.getrandbits(128), version=4))

    async def create_table(self, **fields: Any) -> str:
        """A table where chips can be added and rake is taken; its id."""
        stake = {"rulebook": "modern", "stake_name": "1/2", "rake_schedule_id": "standard"}
        return await self.at.create_table(**{**stake, "currency": CURRENCY, **fields})

    async def ask_twice(
        self, methods: list[Callable[..., Awaitable[Answer]]], request: Any, metadata: Any
    ) -> Answer:
        """The answer, which a second sending does not change."""
        answer = await self.ask(methods[0], request, metadata)
        again = await self.ask(methods[-1], request, metadata)
        assert self._effect(answer) == self._effect(again), type(request).__name__
        self.doubled += 1
        return answer

    async def ask(
        self, method: Callable[..., Awaitable[Answer]], request: Any, metadata: Any
    ) -> Answer:
        """The answer, asked for as long as the fault is passing."""
        return await call(method, request, timeout_s=CALL_S, attempts=TRIES_MAX, metadata=metadata)

    # A visit

    async def visit(self, table_id: str) -> None:
        """Deposit, take a seat, add chips, leave, and withdraw everything when it is back."""
        player = f"guest-{self.new_id()}"
        await self.deposit(player, DEPOSIT)
        await self.take_seat(table_id, player, BUY_IN)
        await self.top_up(table_id, player, TOP_UP)
        balance = await self.leave(table_id, player)
        assert balance.available == DEPOSIT, balance
        await self.withdraw(player, DEPOSIT)
        assert (await self.balance(player)).available == 0

    async def deposit(self, player: str, amount: int) -> None:
        """Money for a player."""
        request = wallet_pb2.DepositRequest(
            request_id=self.new_id(), player_id=player, amount=amount, currency=CURRENCY
        )
        await self.ask_twice([self.at.wallet.Deposit], request, self.at.operator)
        self.held[CURRENCY] += amount

    async def withdraw(self, player: str, amount: int) -> None:
        """The money leaves the room."""
        request = wallet_pb2.WithdrawRequest(
            request_id=self.new_id(), player_id=player, amount=amount, currency=CURRENCY
        )
        await self.ask_twice([self.at.wallet.Withdraw], request, self.at.operator)
        self.held[CURRENCY] -= amount

    async def take_seat(
        self, table_id: str, player: str, buy_in: int, seat: int | None = None
    ) -> int:
        """Sit down; the seat."""
        request = table_pb2.TakeSeatRequest(
            request_id=self.new_id(), table_id=table_id, buy_in=buy_in, seat=seat
        )
        methods = [each.TakeSeat for each in self._tables()]
        answer = await self.ask_twice(methods, request, self.at.bearer(player))
        return int(answer.seat)

    async def top_up(self, table_id: str, player: str, amount: int) -> None:
        """More chips."""
        request = table_pb2.TopUpRequest(request_id=self.new_id(), table_id=table_id, amount=amount)
        methods = [each.TopUp for each in self._tables()]
        await self.ask_twice(methods, request, self.at.bearer(player))

    async def leave(self, table_id: str, player: str) -> wallet_pb2.Balance:
        """Leave, and wait until the money is back from the table: the balance then."""
        request = table_pb2.LeaveSeatRequest(request_id=self.new_id(), table_id=table_id)
        methods = [each.LeaveSeat for each in self._tables()]
        await self.ask_twice(methods, request, self.at.bearer(player))
        while True:
            balance = await self.balance(player)
            if not balance.in_play and not balance.pending:
                return balance
            await asyncio.sleep(LOOK_S)

    async def balance(self, player: str) -> wallet_pb2.Balance:
        """What the player has."""
        asked = wallet_pb2.GetBalanceRequest()
        answer = await self.ask(self.at.wallet.GetBalance, asked, self.at.bearer(player))
        return next(each for each in answer.balances if each.currency == CURRENCY)

    # A hand

    async def hand(self, table_id: str) -> None:
        """Everybody calls until the next hand that begins is over."""
        view = await self.view(table_id)
        wanted = view.hands + (not view.HasField("hand"))
        steps = 0
        while True:
            view = await self.view(table_id)
            over = view.hands - view.HasField("hand")
            if over >= wanted:
                self.hands += 1
                return
            if not view.hand.HasField("turn"):
                await asyncio.sleep(LOOK_S)
                continue
            assert steps < HAND_STEPS_MAX, "a hand that does not end"
            steps += 1
            await self.act(view)

    async def act(self, view: table_pb2.TableView) -> None:
        """Check or call, twice, for who is to act."""
        player = player_to_act(view)
        request = act_request(view, passive(view.hand.turn), request_id=self.new_id())
        methods = [each.Act for each in self._tables()]
        await self.ask_twice(methods, request, self.at.bearer(player))

    async def view(self, table_id: str) -> table_pb2.TableView:
        """The table as everybody sees it."""
        request = table_pb2.GetTableRequest(table_id=table_id)
        method = self._rng.choice(self.at.tables).GetTable
        return (await self.ask(method, request, self.at.operator)).table

    def _tables(self) -> list[Any]:
        return self._rng.sample(self.at.tables, len(self.at.tables))

    @staticmethod
    def _effect(answer: Any) -> Any:
        """What the answer says that happened; a leaving player is out by the second time."""
        if isinstance(answer, table_pb2.LeaveSeatResponse | table_pb2.TopUpResponse):
            return type(answer)
        if isinstance(answer, table_pb2.TakeSeatResponse):
            return answer.seat, answer.sitting_id
        return answer.SerializeToString(deterministic=True)
