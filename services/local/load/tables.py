"""A table under load: whoever is to act there does so when the pace says so."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from doorcard.table.v1 import table_pb2

from services.local.bots import choose
from services.local.load.figures import Figures
from services.local.load.pace import Pace
from services.runtime.errors import DoorcardError

AGAIN_S: Final = 1.0
"""After a refusal, if it is still the same player's turn."""

Ask = Callable[[str, str, table_pb2.PlayAction], Awaitable[object]]
"""(table id, player id, action); raises DoorcardError."""


class LoadTable:
    """Its players decide by dice. players: their ids, by seat."""

    def __init__(
        self,
        table_id: str,
        players: list[str],
        pace: Pace,
        figures: Figures,
        rng: random.Random,
    ) -> None:
        self.table_id: Final = table_id
        self.players: Final = players
        self.ask: Ask | None = None
        """How its players act; before anybody is seated."""
        self.closed: Final = asyncio.Event()
        self._pace = pace
        self._figures = figures
        self._rng = rng
        self._version = 0
        self._hand_id = ""
        self._turn: table_pb2.Turn | None = None
        self._asking: asyncio.Task[None] | None = None

    def see(self, frame: table_pb2.PlayResponseFrame) -> None:
        """A snapshot or an update, of any player's; what is known already is left out."""
        if frame.HasField("snapshot"):
            self._see_all(frame.snapshot)
        elif frame.update.version > self._version:
            self._version = frame.update.version
            for event in frame.update.events:
                self._follow(event)
        else:
            return
        if self._turn is not None and self._asking is None:
            self._pace.turned(self)

    def act(self, due_s: float) -> bool:
        """Whoever is to act does what the dice say."""
        turn, self._turn = self._turn, None
        if turn is None:
            return False
        self._asking = asyncio.create_task(self._act(turn, due_s))
        return True

    async def _act(self, turn: table_pb2.Turn, due_s: float) -> None:
        action = choose(turn.legal, self._rng)
        act = table_pb2.PlayAction(hand_id=self._hand_id, turn=turn.turn, action=action)
        loop = asyncio.get_running_loop()
        try:
            if self.ask is None:
                raise RuntimeError("nobody is seated")
            await self.ask(self.table_id, self.players[turn.seat], act)
        except DoorcardError as error:
            self._figures.refusals[error.reason] += 1
            loop.call_later(AGAIN_S, self._try_again, self._version, turn)
        else:
            self._figures.acted(loop.time() - due_s)
        self._asking = None
        if self._turn is not None:
            self._pace.turned(self)

    def _try_again(self, version: int, turn: table_pb2.Turn) -> None:
        if self._version == version and self._turn is None and not self.closed.is_set():
            self._turn = turn
            self._pace.turned(self)

    def _see_all(self, view: table_pb2.TableView) -> None:
        if view.version <= self._version:
            return
        self._version = view.version
        self._hand_id = view.hand.hand_id
        self._turn = view.hand.turn if view.hand.HasField("turn") else None
        if view.state == table_pb2.TABLE_STATE_CLOSED:
            self.closed.set()

    def _follow(self, event: table_pb2.TableEvent) -> None:
        kind = event.WhichOneof("event")
        if kind == "turn":
            self._turn = event.turn
        elif kind == "hand_started":
            self._hand_id = event.hand_started.hand_id
        elif kind == "hand_ended":
            self._turn = None
            self._figures.hands += 1
        elif event.state_changed.state == table_pb2.TABLE_STATE_CLOSED:
            self.closed.set()
