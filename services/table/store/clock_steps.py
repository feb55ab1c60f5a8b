"""Notices that the store's clock was set: by whoever keeps its machine's time, or because another
server with a clock of its own has the shard now.

Measured against this machine's monotonic clock, shard by shard, at every beat of the heart. What is
slewed is no step, nor is what the comparison of clocks may be wrong by.
"""

from collections.abc import Callable
from typing import Final

from prometheus_client import Counter

from services.runtime.clock import MS_PER_S, monotonic_s
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.store.heart import Sample

STEP_MS: Final = 1000
"""The least that is a step: further than a clock gets that is slewed as fast as it may be."""

BACK: Final = "back"
AHEAD: Final = "ahead"
STEPS: Final = Counter(
    "doorcard_store_clock_steps",
    "Steps of the tables' Redis clock that this replica saw, by where to: back, ahead.",
    ["direction"],
    registry=REGISTRY,
)
for _direction in (BACK, AHEAD):
    STEPS.labels(_direction)


class ClockSteps:
    """The steps of each shard's clock.

    reading: the present comparison of a shard's clock with this machine's; None for none yet.
    """

    def __init__(self, shards: int, reading: Callable[[int], Sample | None]) -> None:
        self.back_s: dict[int, float] = {}
        """Monotonic time at which a shard's clock was seen to be set back."""
        self.ahead_ms: dict[int, int] = {}
        """Time by a shard's clock at which it was seen to be set ahead."""
        self._shards = shards
        self._reading = reading
        self._seen: dict[int, Sample] = {}

    def knows(self, shard: int) -> bool:
        """Whether the shard's clock was looked at."""
        return shard in self._seen

    def look(self) -> None:
        """Compare with the last look."""
        now_s = monotonic_s()
        steps_ms: dict[str, list[int]] = {BACK: [], AHEAD: []}
        for shard in range(self._shards):
            sample = self._reading(shard)
            if sample is None:
                continue
            before = self._seen.get(shard)
            self._seen[shard] = sample
            if before is None:
                continue
            step_ms = sample.step_from(before) // 1000
            if step_ms < -STEP_MS:
                self.back_s[shard] = now_s
                steps_ms[BACK].append(step_ms)
            elif step_ms > STEP_MS:
                self.ahead_ms[shard] = int(now_s * MS_PER_S) + sample.offset_us // 1000
                steps_ms[AHEAD].append(step_ms)
        for direction, seen in steps_ms.items():
            if seen:
                STEPS.labels(direction).inc()
                furthest_ms = max(seen, key=abs)
                logger.warning(
                    "store_clock_set", direction=direction, ms=furthest_ms, shards=len(seen)
                )
