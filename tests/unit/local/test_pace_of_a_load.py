"""When tables under load act, and how what that took is counted."""

import asyncio
import math
import random
import statistics
from typing import Any

import pytest

from services.local.load.figures import Latencies
from services.local.load.pace import AtRate, Pace, Thinking, think_s


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time passes at once when there is nothing else to do."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0

    def time(self) -> float:
        return self.now_s

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now_s = max(self.now_s, self._scheduled[0]._when)  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


class Table:
    """Acts, and is to act again after `answer_s`; never again if that is None."""

    def __init__(self, pace: Pace, answer_s: float | None = None) -> None:
        self.pace = pace
        self.answer_s = answer_s
        self.late_s: list[float] = []
        self.due_s: list[float] = []
        self.over = False

    def act(self, due_s: float) -> bool:
        if self.over:
            return False
        loop = asyncio.get_running_loop()
        self.due_s.append(due_s)
        self.late_s.append(loop.time() - due_s)
        if self.answer_s is not None:
            loop.call_later(self.answer_s, self.pace.turned, self)
        return True


def played(work: Any) -> Any:
    """On a loop of its own."""
    with asyncio.Runner(loop_factory=Clock) as runner:
        return runner.run(work)


def test_nobody_acts_before_the_start() -> None:
    async def play() -> None:
        for pace in (Pace(), AtRate(10), Thinking(random.Random(1))):
            table = Table(pace)
            pace.turned(table)
            await asyncio.sleep(100)
            assert table.due_s == []
            pace.start()
            await asyncio.sleep(100)
            assert len(table.due_s) == 1

    played(play())


def test_flat_out_tables_act_whenever_they_can() -> None:
    async def play() -> None:
        pace = Pace()
        table = Table(pace, answer_s=0.5)
        pace.turned(table)
        pace.start()
        await asyncio.sleep(10.25)
        assert len(table.due_s) == 21
        assert table.late_s == [0] * 21

    played(play())


def test_at_a_rate_actions_are_due_by_the_schedule_alone() -> None:
    async def play() -> None:
        pace = AtRate(10)
        tables = [Table(pace, answer_s=0.3) for _ in range(5)]
        for table in tables:
            pace.turned(table)
        pace.start()
        began_s = asyncio.get_running_loop().time()
        await asyncio.sleep(9.95)
        due_s = sorted(due for table in tables for due in table.due_s)
        assert due_s == pytest.approx([began_s + number / 10 for number in range(100)])
        assert max(late for table in tables for late in table.late_s) == pytest.approx(0, abs=1e-6)
        assert pace.owed == 0

    played(play())


def test_an_action_that_finds_no_table_free_is_late_from_when_it_was_due() -> None:
    async def play() -> None:
        pace = AtRate(10)
        table = Table(pace, answer_s=0.2)  # five a second, where ten are wanted
        pace.turned(table)
        pace.start()
        await asyncio.sleep(10.05)
        assert len(table.due_s) == 51
        assert table.late_s[-1] == pytest.approx(5.0)
        assert pace.owed == 50

    played(play())


def test_a_table_where_nobody_is_to_act_any_more_costs_the_schedule_nothing() -> None:
    async def play() -> None:
        pace = AtRate(10)
        over, other = Table(pace), Table(pace, answer_s=0.01)
        over.over = True
        pace.turned(over)
        pace.turned(other)
        pace.start()
        await asyncio.sleep(0.95)
        assert len(other.due_s) == 10

    played(play())


def test_in_a_hurry_everybody_acts_at_once() -> None:
    async def play() -> None:
        for pace in (AtRate(0.001), Thinking(random.Random(1))):
            tables = [Table(pace) for _ in range(3)]
            for table in tables:
                pace.turned(table)
            pace.start()
            pace.hurry()
            await asyncio.sleep(0)
            assert [len(table.due_s) for table in tables] == [1, 1, 1]
            late = Table(pace)
            pace.turned(late)
            await asyncio.sleep(100)
            assert len(late.due_s) == 1
            assert [len(table.due_s) for table in tables] == [1, 1, 1]

    played(play())


def test_think_times_are_those_of_real_play() -> None:
    dice = random.Random(1909)
    times_s = [think_s(dice) for _ in range(100_000)]
    assert statistics.median(times_s) == pytest.approx(3.6, rel=0.02)
    assert statistics.quantiles(times_s, n=100)[94] == pytest.approx(13.0, rel=0.02)


def test_thinkers_are_due_when_they_have_thought() -> None:
    async def play() -> None:
        pace = Thinking(random.Random(7))
        expected, began_s = random.Random(7), asyncio.get_running_loop().time()
        tables = [Table(pace) for _ in range(20)]
        for table in tables:
            pace.turned(table)
            pace.turned(table)
        pace.start()
        await asyncio.sleep(200)
        for table in tables:
            assert table.due_s == [pytest.approx(began_s + think_s(expected))]
            assert table.late_s == [pytest.approx(0, abs=1e-6)]

    played(play())


def test_percentiles_are_right_to_one_percent() -> None:
    dice = random.Random(1909)
    times_s = [dice.lognormvariate(math.log(0.004), 1.5) for _ in range(20_000)]
    latencies = Latencies()
    for each in times_s:
        latencies.add(each)
    ordered = sorted(times_s)
    for share in (0.5, 0.9, 0.99, 0.999):
        exact_ms = ordered[math.ceil(share * len(ordered)) - 1] * 1000
        assert exact_ms <= latencies.percentile_ms(share) * 1.000001 + 0.001
        assert latencies.percentile_ms(share) <= exact_ms * 1.0101 + 0.001
    assert latencies.percentile_ms(1) == round(ordered[-1] * 1000, 3)


def test_of_nothing_every_percentile_is_0() -> None:
    assert Latencies().percentile_ms(0.99) == 0
