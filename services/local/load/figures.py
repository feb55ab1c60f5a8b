"""What is counted while tables play. Memory stays the same however long that is."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

SMALLEST_S: Final = 1e-6
GROWTH: Final = math.log(1.01)
FAULTS_KEPT: Final = 20


class Latencies:
    """Durations, each counted to within one percent."""

    def __init__(self) -> None:
        self.count = 0
        self.max_s = 0.0
        self._counts: Counter[int] = Counter()

    def add(self, seconds: float) -> None:
        """One more."""
        self.count += 1
        self.max_s = max(self.max_s, seconds)
        times = max(1.0, seconds / SMALLEST_S)
        self._counts[math.ceil(math.log(times) / GROWTH)] += 1

    def percentile_ms(self, share: float) -> float:
        """The nearest-rank percentile in milliseconds, three decimals; 0 of nothing."""
        wanted, passed = share * self.count, 0
        for size in sorted(self._counts):
            passed += self._counts[size]
            if passed >= wanted:
                bound_s = SMALLEST_S * math.exp(size * GROWTH)
                return round(min(bound_s, self.max_s) * 1000, 3)
        return 0.0


@dataclass(slots=True)
class Figures:
    """Of all tables together."""

    actions: int = 0
    """Actions that were accepted."""
    hands: int = 0
    """Hands that ended."""
    refusals: Counter[str] = field(default_factory=Counter)
    """Refused actions by reason."""
    resyncs: int = 0
    """Snapshots that came in place of updates, because too much was missed."""
    reconnects: int = 0
    """Streams opened again."""
    latencies: Latencies = field(default_factory=Latencies)
    """From when an action was due to its answer."""
    recent: Latencies = field(default_factory=Latencies)
    """Likewise, since somebody looked last."""
    faults: list[str] = field(default_factory=list)
    """What must not happen, in words; the first few."""

    def acted(self, took_s: float) -> None:
        """An action was accepted."""
        self.actions += 1
        self.latencies.add(took_s)
        self.recent.add(took_s)

    def failed(self, what: str) -> None:
        """Something happened that must not."""
        if len(self.faults) < FAULTS_KEPT and what not in self.faults:
            self.faults.append(what)
