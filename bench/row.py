"""A line of the bench's table, and how a figure is measured beside its floor."""

import asyncio
import statistics
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import TypedDict

import uvloop


class Row(TypedDict):
    """What is measured, against what, and whether the budget holds."""

    name: str
    """`engine_`, `rank_`, `action_`, `settle_` or `room_` and what it shows."""
    value: float
    unit: str
    floor: float
    """The peer or floor, measured in the same run, in the same unit."""
    ratio: float
    budget: str
    """What the ratio must be."""
    ok: bool


def at_least(name: str, value: float, unit: str, floor: float, ratio: float, times: float) -> Row:
    """A figure that must be so many times its floor."""
    return Row(
        name=name,
        value=value,
        unit=unit,
        floor=floor,
        ratio=ratio,
        budget=f">= {times:g} x",
        ok=ratio >= times,
    )


def at_most(name: str, value: float, unit: str, floor: float, ratio: float, times: float) -> Row:
    """A figure that must not be more than so many times its floor, or its limit."""
    return Row(
        name=name,
        value=value,
        unit=unit,
        floor=floor,
        ratio=ratio,
        budget=f"<= {times:g} x",
        ok=ratio <= times,
    )


def within(name: str, value: float, unit: str, limit: float) -> Row:
    """A figure that is measured against its limit."""
    return at_most(name, value, unit, limit, value / limit, 1)


def beside(name: str, value: float, unit: str, floor: float) -> Row:
    """A figure without a budget, beside what it may be compared with."""
    return Row(
        name=name, value=value, unit=unit, floor=floor, ratio=value / floor, budget="none", ok=True
    )


def as_they_come(measured: AsyncGenerator[Row]) -> Iterator[Row]:
    """The rows of an async measurement, which is ended however the taking of them ends."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            while (row := runner.run(_next(measured))) is not None:
                yield row
        finally:
            runner.run(measured.aclose())


async def _next(measured: AsyncGenerator[Row]) -> Row | None:
    return await anext(measured, None)


def interleaved_rates(
    ours: Callable[[], int], theirs: Callable[[], int], rounds: int
) -> tuple[float, float, float]:
    """Ours per CPU second, theirs, and the ratio: medians over rounds in which both run in turn.

    Each callable does one round and returns how many it did.
    """
    ours()
    theirs()
    rates = [(_rate(ours), _rate(theirs)) for _ in range(rounds)]
    return (
        statistics.median(mine for mine, _ in rates),
        statistics.median(other for _, other in rates),
        statistics.median(mine / other for mine, other in rates),
    )


def _rate(work: Callable[[], int]) -> float:
    began_s = time.process_time()
    done = work()
    return done / (time.process_time() - began_s)
