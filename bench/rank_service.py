"""Showdowns of running tables while analysts ask for all that the service lets in: the 99th
percentile of `DivideShowdown` at a fixed rate, in turns with and without them.
"""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Final

import grpc
import uvloop
from doorcard.game.v1 import game_pb2
from doorcard.showdown.v1 import showdown_pb2 as pb
from doorcard.showdown.v1 import showdown_pb2_grpc

from bench.row import Row, at_most
from services.game.cards import card_name
from services.local.keys import RoomKeys
from services.local.supervisor import Program, Supervisor, by_file
from services.runtime.channels import connect
from services.runtime.ready import read_ready
from services.runtime.settings import LOOPBACK, ServiceSettings

if TYPE_CHECKING:
    Stub = showdown_pb2_grpc.ShowdownServiceAsyncStub
else:
    Stub = showdown_pb2_grpc.ShowdownServiceStub

ANALYSES: Final = 8
"""As many as the service lets in."""
RATE: Final = 200
"""Showdowns a second."""
PHASE_S: Final = 2.0
ROUNDS: Final = 7
TIMES: Final = 4.0
CALL_S: Final = 5.0
MS: Final = 1000.0


def rows() -> Iterator[Row]:
    """The figure of showdowns beside analysts."""
    quiet, busy = uvloop.run(_measure())
    ratio = median(one / other for one, other in zip(busy, quiet, strict=True))
    yield at_most(
        "rank_showdown_p99_beside_analysts", median(busy), "ms", median(quiet), ratio, TIMES
    )


async def _measure() -> tuple[list[float], list[float]]:
    """Milliseconds by round: without analysts and with them."""
    quiet, busy = [], []
    async with _service() as showdown:
        await _p99_ms(showdown)
        for _ in range(ROUNDS):
            quiet.append(await _p99_ms(showdown))
            async with _full(showdown):
                busy.append(await _p99_ms(showdown))
    return quiet, busy


async def _p99_ms(showdown: Stub) -> float:
    """Of showdowns at the rate, each from the moment that it was due."""
    began_s = time.perf_counter()
    calls = []
    for number in range(int(RATE * PHASE_S)):
        due_s = began_s + number / RATE
        await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
        calls.append(asyncio.create_task(_divided(showdown, due_s)))
    return quantiles(await asyncio.gather(*calls), n=100)[-1] * MS


async def _divided(showdown: Stub, due_s: float) -> float:
    await showdown.DivideShowdown(_SHOWDOWN, timeout=CALL_S)
    return time.perf_counter() - due_s


@asynccontextmanager
async def _full(showdown: Stub) -> AsyncIterator[None]:
    """Every place for analyses is taken inside the block, whatever ends."""
    tasks = [asyncio.create_task(_analyse(showdown)) for _ in range(ANALYSES)]
    while await _let_in(showdown):
        await asyncio.sleep(0.01)
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    while not await _let_in(showdown):
        await asyncio.sleep(0.01)


async def _analyse(showdown: Stub) -> None:
    while True:
        with contextlib.suppress(grpc.RpcError):  # Late, or not let in just now.
            async for _ in showdown.EstimateEquity(_ANALYSIS, timeout=60):
                pass


async def _let_in(showdown: Stub) -> bool:
    try:
        await showdown.EvaluateHands(_EVALUATION, timeout=CALL_S)
    except grpc.RpcError as refused:
        if refused.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
            raise
        return False
    return True


@asynccontextmanager
async def _service() -> AsyncIterator[Stub]:
    """A showdown service in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="doorcard-bench-") as name:
        folder = Path(name)
        keys = RoomKeys(folder / "keys")
        keys.mint_tokens(["table"])
        ready_file = folder / "showdown.json"
        settings = {
            "LISTEN": f"{LOOPBACK}:0",
            "METRICS_LISTEN": f"{LOOPBACK}:0",
            "READY_FILE": str(ready_file),
            "AUTH_KEYS_FILE": str(keys.auth_keys_file),
            "LOG_LEVEL": "error",
            "TABLES_FOLDER": str(folder / "tables"),
            "ANALYSES_MAX": str(ANALYSES),
        }
        program = Program(
            "showdown",
            (sys.executable, "-m", "services.showdown"),
            by_file(ready_file),
            env={f"DOORCARD_{key}": value for key, value in settings.items()},
        )
        async with Supervisor(folder / "logs") as supervisor:
            await supervisor.start(program)
            ready = read_ready(ready_file)
            if ready is None:
                raise RuntimeError("the service was never ready")
            client = ServiceSettings(token_file=keys.token_file("table"))
            async with connect(f"{LOOPBACK}:{ready.grpc}", client) as channel:
                yield showdown_pb2_grpc.ShowdownServiceStub(channel)


def _hand(cards: Sequence[int]) -> list[str]:
    return [card_name(card) for card in cards]


_SHOWDOWN: Final = pb.DivideShowdownRequest(
    game=game_pb2.GAME_HI_LO,
    pots=[game_pb2.Pot(amount=12_345, seats=[0, 1, 2]), game_pb2.Pot(amount=777, seats=[0, 1])],
    hands=[
        pb.PlayerHand(seat=seat, cards=_hand(range(7 * seat, 7 * seat + 7))) for seat in range(3)
    ],
    button=5,
    table_seats=8,
)
_ANALYSIS: Final = pb.EstimateEquityRequest(
    game=game_pb2.GAME_HI_LO, players=[pb.KnownHand()] * 6, standard_error_max=0.0001
)
_EVALUATION: Final = pb.EvaluateHandsRequest(
    ranking=pb.RANKING_HIGH, packed_hands=bytes(range(7)), packed_cards=7
)
