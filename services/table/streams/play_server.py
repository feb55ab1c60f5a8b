"""`Play`: what players and gateways send on their streams, taken as it comes.

All frames of a message are taken together, in order; what is wrong with one is its own answer and
leaves the stream open. A player's own stream is for him alone. A gateway's is for every player that
its token covers, and for spectators whom it does not name.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2
from google.protobuf.message import DecodeError
from grpc import aio

from services.game.rulebook import UNITS_MAX
from services.game.wants import ActionKind
from services.runtime.auth import Caller, acting_player, current_caller
from services.runtime.errors import (
    OUR_FAULT,
    DoorcardError,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    PermissionDenied,
    Unavailable,
)
from services.runtime.ids import check_request_id, check_uuid
from services.runtime.logs import bind, logger
from services.runtime.roles import Role
from services.table.hands.hands import Order
from services.table.hands.options import Wish
from services.table.state import views
from services.table.streams.budgets import Budgets, pause_s
from services.table.streams.streams import Stream, Write
from services.table.streams.watchers import Watchers
from services.table.tables.tables import Tables

TURN_MAX: Final = 2**31
STREETS: Final = range(3, 8)
_FOR_SPECTATORS: Final = ("join", "part")
_COSTS: Final = ("join", "part", "presence", "options")
"""Frames that are counted (`budgets`)."""

Frame = table_pb2.PlayRequestFrame
Read = Callable[[], Awaitable[Any]]
"""The next PlayRequest, or `aio.EOF`."""


class PlayServer:
    """The `Play` streams of a replica."""

    def __init__(self, tables: Tables, watchers: Watchers) -> None:
        self._tables = tables
        self._watchers = watchers
        self._budgets = Budgets()
        self._joins: set[asyncio.Task[int]] = set()

    async def play(self, read: Read, write: Write) -> None:
        """One stream, for as long as it lasts."""
        caller = current_caller()
        stream = self._open(caller)
        playing = _Playing(self._tables, self._watchers, self._budgets, self._joins, stream, caller)
        reading = asyncio.create_task(playing.read(read))
        try:
            await stream.write_out(write)
        finally:
            reading.cancel()
            self._watchers.close(stream)

    def _open(self, caller: Caller) -> Stream:
        try:
            return self._watchers.open(acting_player(caller))
        except PermissionDenied as error:
            # A gateway that has not said in the header which one player the stream is for.
            if error.reason != "PLAYER_NOT_NAMED" or Role.SERVICE not in caller.roles:
                raise
            return self._watchers.open_gateway(caller.subject)


class _Playing:
    """One stream's requests."""

    __slots__ = (
        "_budgets",
        "_caller",
        "_joins",
        "_last_table",
        "_refused",
        "_stream",
        "_tables",
        "_watchers",
    )

    def __init__(
        self,
        tables: Tables,
        watchers: Watchers,
        budgets: Budgets,
        joins: "set[asyncio.Task[int]]",
        stream: Stream,
        caller: Caller,
    ) -> None:
        self._tables = tables
        self._watchers = watchers
        self._budgets = budgets
        self._stream = stream
        self._caller = caller
        self._last_table = ""
        self._refused = 0
        """Frames that were refused since the last pause in reading, at once or later."""
        self._joins = joins

    async def read(self, read: Read) -> None:
        """Take what comes until the stream ends."""
        stream = self._stream
        try:
            # No message is held while the next one is waited for, which may be for hours.
            while self._take_all(await read()):
                if self._refused:
                    # What he sends meanwhile waits with him, and costs nobody else anything.
                    wait_s = pause_s(self._refused, len(stream.following), stream.limits.pause_s)
                    self._refused = 0
                    await asyncio.sleep(wait_s)
                await stream.room()
        except DoorcardError as error:
            stream.end(error)
        except DecodeError:
            # The client's fault: it must not count as a stream that we cut.
            stream.end(InvalidArgument("MALFORMED", "what came is no PlayRequest"))
        except Exception as error:
            logger.error("stream_failed", exc_info=error)
            stream.end(Internal("INTERNAL", "internal error"))
        else:
            stream.end()

    def _take_all(self, request: Any) -> bool:
        """Take the frames of a message; False if it is the end. Raises InvalidArgument."""
        if request is aio.EOF:
            return False
        arrived_s = time.perf_counter()
        most = self._stream.limits.frames
        if len(request.frames) > most:
            raise InvalidArgument.of_field("frames", f"at most {most} at once")
        for frame in request.frames:
            self._take(frame, arrived_s)
        return True

    def _take(self, frame: Frame, arrived_s: float) -> None:
        table_id = frame.table_id
        if not self._stream.gateway:
            # His own stream may be for one table, which he need not name again.
            table_id = self._last_table = table_id or self._last_table
        named, request_id = frame.player_id, frame.request_id
        try:
            check_request_id(request_id)
            kind = frame.WhichOneof("frame") or ""
            player_id = self._player_of(frame, kind)
            everywhere = kind == "presence" and not table_id
            if kind in _COSTS:
                followed = len(self._stream.following.get(player_id, ())) if everywhere else 0
                self._budgets.take((self._stream.gateway, player_id), max(1, followed))
            if everywhere:
                self._be_present_everywhere(player_id, connected=frame.presence.connected)
                self._answer(table_id, named, request_id, 0)
                return
            table_id = check_uuid(table_id, "table_id")
            if kind != "join" and not self._watchers.follows(self._stream, table_id, player_id):
                raise FailedPrecondition("NOT_JOINED", "the first frame for a table is its join")
            if kind in ("presence", "part"):
                reached = self._come_or_go(frame, table_id, player_id)
                self._answer(table_id, named, request_id, reached)
                return
            waited = self._submit(frame, kind, table_id, player_id, arrived_s)
        except DoorcardError as error:
            self._answer(table_id, named, request_id, 0, error)
            return
        self._stream.expect()
        waited.add_done_callback(partial(self._done, table_id, named, request_id))

    def _player_of(self, frame: Frame, kind: str) -> str:
        """Whom the frame is for. Raises PermissionDenied, InvalidArgument."""
        if self._stream.gateway:
            if not frame.player_id and kind in _FOR_SPECTATORS:
                return views.PUBLIC
            return acting_player(self._caller, frame.player_id)
        if frame.player_id not in ("", self._stream.player_id):
            raise PermissionDenied("NOT_YOUR_PLAYER", "the stream is another player's")
        return self._stream.player_id

    def _submit(
        self, frame: Frame, kind: str, table_id: str, player_id: str, arrived_s: float
    ) -> "asyncio.Future[int]":
        """Begin what takes time; nothing of the same message waits for it."""
        if kind == "act":
            order = order_of(player_id, frame.act, frame.request_id)
            return self._tables.act(table_id, order, arrived_s)
        if kind == "options":
            wish = wish_of(player_id, frame.options, frame.request_id)
            return self._tables.set_options(table_id, wish, arrived_s)
        if kind != "join":
            raise InvalidArgument.of_field("frame", "must be one of the frames")
        joining = self._watchers.join(self._stream, table_id, frame.join.from_version, player_id)
        task = asyncio.get_running_loop().create_task(joining)
        self._joins.add(task)
        task.add_done_callback(self._joins.discard)
        return task

    def _come_or_go(self, frame: Frame, table_id: str, player_id: str) -> int:
        if frame.HasField("part"):
            return self._watchers.part(self._stream, table_id, player_id)
        return self._watchers.be_present(
            self._stream, table_id, player_id, connected=frame.presence.connected
        )

    def _be_present_everywhere(self, player_id: str, *, connected: bool) -> None:
        for table_id in self._stream.following.get(player_id, ()):
            self._watchers.be_present(self._stream, table_id, player_id, connected=connected)

    def _done(
        self, table_id: str, named: str, request_id: str, waited: "asyncio.Future[int]"
    ) -> None:
        if waited.cancelled():
            failure: BaseException | None = Unavailable("SERVER_STOPS", "the server goes away")
        else:
            failure = waited.exception()
        version = 0 if failure is not None else waited.result()
        frame = self._result(table_id, named, request_id, version, failure)
        self._stream.answer_expected(frame)

    def _answer(
        self,
        table_id: str,
        named: str,
        request_id: str,
        version: int,
        failure: DoorcardError | None = None,
    ) -> None:
        self._stream.answer(self._result(table_id, named, request_id, version, failure))

    def _result(
        self,
        table_id: str,
        named: str,
        request_id: str,
        version: int,
        failure: BaseException | None,
    ) -> bytes:
        """What became of a request, encoded; on a gateway's stream for the player it named."""
        result: dict[str, Any] = {"request_id": request_id, "version": version}
        if isinstance(failure, DoorcardError):
            self._refused += failure.code not in OUR_FAULT
            result["refusal"] = _refusal(failure)
        elif failure is not None:
            result["refusal"] = _refusal(Internal("INTERNAL", "internal error"))
        player_ids = (named,) if self._stream.gateway else ()
        return views.frame(table_id, result=result, player_ids=player_ids)


def order_of(
    player_id: str, act: table_pb2.ActRequest | table_pb2.PlayAction, request_id: str
) -> Order:
    """What a player wants to do. Raises InvalidArgument."""
    bind(request=check_request_id(request_id))
    hand_id = check_uuid(act.hand_id, "hand_id")
    if not 0 <= act.turn <= TURN_MAX:
        raise InvalidArgument.of_field("turn", f"must be 0 to {TURN_MAX}")
    kind = _action_kind(act.action)
    if not 0 <= act.action.amount <= UNITS_MAX:
        raise InvalidArgument.of_field("action.amount", f"must be 0 to {UNITS_MAX}")
    return Order(player_id, request_id, hand_id, act.turn, kind, act.action.amount)


def wish_of(
    player_id: str,
    asked: table_pb2.SetSeatOptionsRequest | table_pb2.PlayOptions,
    request_id: str,
) -> Wish:
    """What a player wants his seat to do by itself. Raises InvalidArgument."""
    bind(request=check_request_id(request_id))
    options, hand_id = asked.options, ""
    chosen = options.next_action
    if chosen.kind:
        hand_id = check_uuid(chosen.hand_id, "options.next_action.hand_id")
        if chosen.kind not in table_pb2.PreAction.Kind.values():
            raise InvalidArgument.of_field("options.next_action.kind", "must be one of the kinds")
        if chosen.street not in STREETS:
            raise InvalidArgument.of_field("options.next_action.street", "must be 3 to 7")
    return Wish(
        player_id=player_id,
        request_id=request_id,
        auto_ante=options.auto_ante if options.HasField("auto_ante") else None,
        show_beaten=options.show_beaten,
        sit_out_next=options.sit_out_next,
        confirm_ante=asked.confirm_ante,
        kind=chosen.kind,
        hand_id=hand_id,
        street=chosen.street if chosen.kind else 0,
    )


def _action_kind(action: game_pb2.Action) -> ActionKind:
    try:
        return ActionKind(action.kind)
    except ValueError:
        raise InvalidArgument.of_field("action.kind", "must be one of the actions") from None


def _refusal(error: DoorcardError) -> table_pb2.Refusal:
    """An error in the words of a stream."""
    metadata = dict(error.metadata)
    if error.retry_after_ms is not None:
        metadata["retry_after_ms"] = str(error.retry_after_ms)
    return table_pb2.Refusal(
        code=error.code.value[0], reason=error.reason, message=error.message, metadata=metadata
    )
