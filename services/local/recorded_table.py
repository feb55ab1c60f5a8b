"""A recorded hand played at a real table: every player on a `Play` stream of his own.

Players take their seats with their stacks, act as recorded once their own stream tells them that it
is their turn, and what must be refused is tried on the way.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar
from uuid import uuid4

import grpc
from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import admin_pb2, admin_pb2_grpc, table_pb2, table_pb2_grpc
from doorcard.wallet.v1 import wallet_pb2, wallet_pb2_grpc

from services.game.cards import card_name
from services.game.phh import RecordedAction, Word
from services.game.replay import Move, Replayed, ReplayedPot
from services.game.staging import Staging, rulebook_toml
from services.local.bots import Access, bearer, insist
from services.runtime.errors import DoorcardError

Kind = game_pb2.ActionKind
Answer = TypeVar("Answer")

CURRENCY: Final = "XTS"
WHY: Final = "a recorded hand begins when all have sat down"
PATIENCE_S: Final = 60.0
"""Longest wait for a table to go on."""
ACTION_MS: Final = 300_000
HURRIED_MS: Final = 4_000
"""Time to act where the record has somebody run out of it."""
HAND_PAUSE_MS: Final = 500


class DiffersError(Exception):
    """The table did something else than the record, or refused what it has."""


class AgainError(Exception):
    """Something that is not of the hand came between, as a deck for a beginning that was taken
    back: worth another try at a new table.
    """


async def play_at_table(
    staging: Staging,
    access: Access,
    tokens: Callable[[str], str],
    *,
    table: str,
    rake_schedule: str,
) -> Replayed:
    """What came out. table: the request id that makes the table, and so its id. tokens: of players.

    Raises DiffersError, AgainError, DoorcardError and TimeoutError.
    """
    seats = staging.setup.seats
    players = {seat: f"{table}.p{seat + 1}" for seat in seats}
    recorded = _RecordedTable(staging, access, {s: tokens(p) for s, p in players.items()})
    await recorded.open(table, rake_schedule, players)
    try:
        async with recorded.chairs_taken():
            await recorded.deal()
            for move in staging.moves:
                await recorded.make(move)
            return await recorded.outcome()
    finally:
        await recorded.close()


class _Chair:
    """What one player has seen on his stream."""

    def __init__(self, seat: int, table_id: str, token: str) -> None:
        self.seat: Final = seat
        self.token: Final = token
        self.said: Final[asyncio.Queue[table_pb2.PlayRequest]] = asyncio.Queue(maxsize=64)
        self.hand_id = ""
        self.button = -1
        self.turn: table_pb2.Turn | None = None
        self.stack = -1
        self.connected: set[int] = set()
        """Seats whose streams the table knows of."""
        self.ended = False
        self.events: list[game_pb2.HandEvent] = []
        self.results: dict[str, table_pb2.RequestResult] = {}
        self._table_id = table_id

    def join(self) -> None:
        """Open the table."""
        self._say(str(uuid4()), join=table_pb2.JoinTable())

    def act(self, turn: int, kind: int, amount: int) -> str:
        """Act for a decision; the id under which the answer comes."""
        request_id = str(uuid4())
        action = game_pb2.Action(kind=Kind.ValueType(kind), amount=amount)
        act = table_pb2.PlayAction(hand_id=self.hand_id, turn=turn, action=action)
        self._say(request_id, act=act)
        return request_id

    def _say(
        self,
        request_id: str,
        join: table_pb2.JoinTable | None = None,
        act: table_pb2.PlayAction | None = None,
    ) -> None:
        frame = table_pb2.PlayRequestFrame(
            request_id=request_id, table_id=self._table_id, join=join, act=act
        )
        self.said.put_nowait(table_pb2.PlayRequest(frames=[frame]))

    def see(self, frame: table_pb2.PlayResponseFrame) -> None:
        """Take in what the stream says."""
        match frame.WhichOneof("frame"):
            case "snapshot":
                self._snapshot(frame.snapshot)
            case "update":
                for event in frame.update.events:
                    self._event(event)
            case "result":
                self.results[frame.result.request_id] = frame.result
            case _:
                raise DiffersError("the table went away")

    def _snapshot(self, view: table_pb2.TableView) -> None:
        self.connected.update(seat.seat for seat in view.seats if seat.connected)
        if view.HasField("hand"):
            raise AgainError("a stream skipped a part of the hand")

    def _event(self, event: table_pb2.TableEvent) -> None:
        match event.WhichOneof("event"):
            case "hand_started":
                self.hand_id, self.button = event.hand_started.hand_id, event.hand_started.button
            case "hand":
                self.events.append(event.hand)
            case "turn":
                self.turn = event.turn
            case "hand_ended":
                self.ended = True
            case "seat_changed":
                seat = event.seat_changed.seat
                if seat.connected:
                    self.connected.add(seat.seat)
                if seat.seat == self.seat:
                    self.stack = seat.stack


class _RecordedTable:
    def __init__(self, staging: Staging, access: Access, tokens: Mapping[int, str]) -> None:
        self._staging = staging
        self._access = access
        self._tokens = tokens
        self._tables = [table_pb2_grpc.TableServiceStub(channel) for channel in access.tables]
        self._admin = admin_pb2_grpc.TableAdminServiceStub(access.tables[0])
        self._table_id = ""
        self._chairs: dict[int, _Chair] = {}
        self._changed = asyncio.Condition()
        self._failed: Exception | None = None

    async def open(self, table: str, rake_schedule: str, players: Mapping[int, str]) -> None:
        """The table, its players seated with their stacks; no hand begins yet."""
        setup = self._staging.setup
        rulebook = self._staging.rulebook
        hurried = any(not move.kind for move in self._staging.moves)
        create = table_pb2.CreateTableRequest(
            request_id=table,
            name=table,
            rulebook_toml=rulebook_toml(rulebook),
            stake_name=rulebook.stakes[0].name,
            seats=len(setup.seats),
            currency=CURRENCY,
            rake_schedule_id=rake_schedule,
            action_ms=HURRIED_MS if hurried else ACTION_MS,
            hand_pause_ms=HAND_PAUSE_MS,
        )
        answer = await self._ask(self._tables[0].CreateTable, create)
        self._table_id = answer.table.config.table_id
        await self._pause()
        wallet = wallet_pb2_grpc.WalletServiceStub(self._access.wallet)
        for seat, stack in zip(setup.seats, setup.stacks, strict=True):
            deposit = wallet_pb2.DepositRequest(
                request_id=str(uuid4()), player_id=players[seat], amount=stack, currency=CURRENCY
            )
            await self._ask(wallet.Deposit, deposit)
            take = table_pb2.TakeSeatRequest(
                request_id=str(uuid4()), table_id=self._table_id, seat=seat, buy_in=stack
            )
            await insist(self._tables[0].TakeSeat, take, self._tokens[seat])

    @contextlib.asynccontextmanager
    async def chairs_taken(self) -> AsyncIterator[None]:
        """Every player on a stream, in turn at one replica and at the next, and known to be."""
        self._chairs = {
            seat: _Chair(seat, self._table_id, token) for seat, token in self._tokens.items()
        }
        chairs = list(self._chairs.values())
        listening = [asyncio.create_task(self._listen(chair)) for chair in chairs]
        try:
            for chair in chairs:
                chair.join()
            await self._until(lambda: all(c.connected >= self._chairs.keys() for c in chairs))
            yield
        finally:
            for task in listening:
                task.cancel()
            await asyncio.gather(*listening, return_exceptions=True)

    async def deal(self) -> None:
        """Let the hand begin. Raises AgainError."""
        resume = admin_pb2.TableAdminServiceResumeTableRequest(
            request_id=str(uuid4()), table_id=self._table_id, reason=WHY
        )
        await self._ask(self._admin.ResumeTable, resume)
        chair, count = self._any_chair, len(self._chairs)
        await self._until(lambda: len(_up_cards(chair)) >= count)
        doors = [card_name(card) for card in self._staging.deck[2 * count : 3 * count]]
        if chair.button != self._staging.setup.button or _up_cards(chair)[:count] != doors:
            raise AgainError("the table was given another deck")

    async def make(self, move: Move) -> None:
        """Wait for a player's turn, try what must be refused, and do what he did."""
        chair = self._chairs[move.seat]
        await self._until(lambda: chair.ended or _turn(chair) >= move.turn)
        turn = chair.turn
        if chair.ended or turn is None:
            raise DiffersError(f"the hand is over before move {move.at}")
        if (turn.turn, turn.seat) != (move.turn, move.seat):
            raise DiffersError(f"p{turn.seat + 1} is to act, not p{move.seat + 1}")
        for action in self._staging.refused.get(move.turn, ()):
            await self._refused(action, turn)
        if move.kind:
            refusal = await self._answer(chair, chair.act(move.turn, move.kind, move.amount))
            if refusal:
                raise DiffersError(f"action {move.at} is refused: {refusal}")
        else:
            await self._until(lambda: chair.ended or _turn(chair) > move.turn)
            out = [each for each in chair.events if each.WhichOneof("event") == "timed_out"]
            if move.seat not in [each.timed_out for each in out]:
                raise DiffersError(f"p{move.seat + 1} did not run out of time")

    async def outcome(self) -> Replayed:
        """Stacks and pots as the table has them once the hand is over."""
        await self._until(lambda: all(chair.ended for chair in self._chairs.values()))
        events, seats = self._any_chair.events, self._staging.setup.seats
        stacks = tuple(self._chairs[seat].stack for seat in seats)
        return outcome_of(events, seats, stacks)

    async def close(self) -> None:
        """No second hand."""
        if self._table_id:
            with contextlib.suppress(DoorcardError):
                await self._pause()

    async def _refused(self, action: RecordedAction, turn: table_pb2.Turn) -> None:
        chair = self._chairs[action.seat]
        kind = _kind_of(action, turn.legal)
        if not await self._answer(chair, chair.act(turn.turn, kind, action.amount)):
            raise DiffersError(f"{action.text!r} is accepted")

    async def _answer(self, chair: _Chair, request_id: str) -> str:
        """Why a request was refused; empty if it was not."""
        await self._until(lambda: request_id in chair.results)
        result = chair.results[request_id]
        if not result.HasField("refusal"):
            return ""
        return f"{result.refusal.reason}: {result.refusal.message}"

    async def _listen(self, chair: _Chair) -> None:
        stub = self._tables[chair.seat % len(self._tables)]
        stream = stub.Play(_requests(chair), metadata=bearer(chair.token))
        try:
            while isinstance(answer := await stream.read(), table_pb2.PlayResponse):
                async with self._changed:
                    for frame in answer.frames:
                        chair.see(frame)
                    self._changed.notify_all()
            raise DiffersError("the table ended a stream")
        except grpc.RpcError as error:
            await self._fail(DoorcardError.from_rpc(error))
        except (DiffersError, AgainError) as error:
            await self._fail(error)
        finally:
            stream.cancel()

    async def _fail(self, error: Exception) -> None:
        async with self._changed:
            self._failed = self._failed or error
            self._changed.notify_all()

    async def _until(self, done: Callable[[], bool]) -> None:
        """Wait until the streams have shown it. Raises what a stream failed with."""
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(lambda: self._failed is not None or done())
        if self._failed is not None:
            raise self._failed

    async def _pause(self) -> None:
        pause = admin_pb2.TableAdminServicePauseTableRequest(
            request_id=str(uuid4()), table_id=self._table_id, reason=WHY
        )
        await self._ask(self._admin.PauseTable, pause)

    async def _ask(self, method: Callable[..., Awaitable[Answer]], request: object) -> Answer:
        return await insist(method, request, self._access.operator_token)

    @property
    def _any_chair(self) -> _Chair:
        return next(iter(self._chairs.values()))


def outcome_of(
    events: Sequence[game_pb2.HandEvent], seats: Sequence[int], stacks: tuple[int, ...]
) -> Replayed:
    """What a hand's public events and the stacks after it come to."""
    uncalled, payouts = dict.fromkeys(seats, 0), dict.fromkeys(seats, 0)
    pots: list[ReplayedPot] = []
    winners: dict[int, set[int]] = {}
    rake = 0
    for event in events:
        match event.WhichOneof("event"):
            case "uncalled":
                uncalled[event.uncalled.seat] += event.uncalled.amount
            case "pots":
                pots = [ReplayedPot(each.amount, tuple(each.seats), ()) for each in event.pots.pots]
            case "raked":
                rake = sum(event.raked.shares)
            case "awarded":
                payouts[event.awarded.seat] += event.awarded.amount
                winners.setdefault(event.awarded.pot, set()).add(event.awarded.seat)
    return Replayed(
        error="",
        at=0,
        pots=tuple(
            replace(pot, winners=tuple(sorted(winners.get(index, ()))))
            for index, pot in enumerate(pots)
        ),
        uncalled=tuple(uncalled.values()),
        rake=rake,
        payouts=tuple(payouts.values()),
        finishing_stacks=stacks,
    )


def _turn(chair: _Chair) -> int:
    return chair.turn.turn if chair.turn is not None else -1


def _up_cards(chair: _Chair) -> list[str]:
    """Up cards in the order dealt."""
    return [each.dealt.card for each in chair.events if each.dealt.up]


def _kind_of(action: RecordedAction, legal: game_pb2.LegalActions) -> int:
    match action.word:
        case Word.FOLD:
            return Kind.ACTION_KIND_FOLD
        case Word.BRING_IN:
            return Kind.ACTION_KIND_BRING_IN
        case Word.CHECK_OR_CALL:
            return Kind.ACTION_KIND_CALL if legal.call else Kind.ACTION_KIND_CHECK
        case _:
            return legal.wager_kind


async def _requests(chair: _Chair) -> AsyncIterator[table_pb2.PlayRequest]:
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            yield await chair.said.get()
