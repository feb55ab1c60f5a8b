"""Random bytes from the kernel, watched while they are drawn.

The tests follow NIST SP 800-90B, section 4.4 (repetition count, adaptive proportion), on the very
bytes that decks are made of, with a false-alarm probability of 2^-64 per byte: never in the life of
a room. A third one catches a generator that gives the same block twice, as after the copy of a
machine. A failure holds for the life of the process: only a new start, with its own tests, deals
again.
"""

import math
from fractions import Fraction
from hashlib import sha256
from os import urandom
from typing import Final

from prometheus_client import Counter, Gauge

from services.runtime.metrics import REGISTRY

FALSE_ALARM_BITS: Final = 64
BITS_PER_BYTE: Final = 8
"""Entropy claimed for a byte: the kernel's output is conditioned, so all of it."""
WINDOW: Final = 512
"""Bytes over which the adaptive proportion is counted (SP 800-90B, 4.4.2)."""
BLOCK: Final = 32
"""Bytes at the head of each draw that must differ from those of the draw before."""
START_BYTES: Final = 64 * WINDOW
"""Bytes drawn and thrown away at start to test the generator before the first deck."""

RNG_HEALTHY: Final = Gauge(
    "doorcard_rng_healthy",
    "1 while the generator passes its health tests, 0 from the first failure on.",
    registry=REGISTRY,
)
RNG_FAILURES: Final = Counter(
    "doorcard_rng_health_failures",
    "Failed health tests of the generator.",
    ["test"],
    registry=REGISTRY,
)
RNG_BYTES: Final = Counter(
    "doorcard_rng_bytes", "Random bytes drawn from the kernel and tested.", registry=REGISTRY
)


def repetition_cutoff() -> int:
    """Equal bytes in a row that fail (SP 800-90B, 4.4.1)."""
    return 1 + math.ceil(FALSE_ALARM_BITS / BITS_PER_BYTE)


def proportion_cutoff() -> int:
    """Occurrences of a window's first byte in the window that fail (SP 800-90B, 4.4.2): one more
    than the smallest count that a binomial of the window exceeds with less than the false-alarm
    probability.
    """
    chance = Fraction(1, 2**BITS_PER_BYTE)
    bound = Fraction(1, 2**FALSE_ALARM_BITS)
    above, count = Fraction(0), WINDOW
    while True:
        term = math.comb(WINDOW, count) * chance**count * (1 - chance) ** (WINDOW - count)
        if above + term >= bound:
            return count + 1
        above += term
        count -= 1


REPETITION_CUTOFF: Final = repetition_cutoff()
PROPORTION_CUTOFF: Final = proportion_cutoff()


class RngUnhealthy(Exception):  # noqa: N818 (what happened, in plain words)
    """The generator failed a health test: nothing may be dealt. `test` names it."""

    def __init__(self, test: str) -> None:
        super().__init__(f"the random generator failed its {test} test")
        self.test = test


class HealthTests:
    """Looks at every byte that is drawn; keeps counts and digests of what passed, not the bytes."""

    def __init__(self) -> None:
        self._head = b""
        self._last = -1
        self._run = 0
        self._sample = -1
        self._seen = 0
        self._left = 0

    def look(self, drawn: bytes) -> None:
        """Test the next bytes of the generator's output. Raises RngUnhealthy at a bad sign."""
        if len(drawn) >= BLOCK:
            head = sha256(drawn[:BLOCK]).digest()
            if head == self._head:
                raise RngUnhealthy("repeated block")
            self._head = head
        self._count_repetitions(drawn)
        self._count_proportion(drawn)

    def _count_repetitions(self, drawn: bytes) -> None:
        for byte in drawn:
            if byte != self._last:
                self._last, self._run = byte, 0
            self._run += 1
            if self._run >= REPETITION_CUTOFF:
                raise RngUnhealthy("repetition count")

    def _count_proportion(self, drawn: bytes) -> None:
        start = 0
        while start < len(drawn):
            if not self._left:
                self._sample, self._seen, self._left = drawn[start], 0, WINDOW
            part = drawn[start : start + self._left]
            self._seen += part.count(self._sample)
            self._left -= len(part)
            start += len(part)
            if self._seen >= PROPORTION_CUTOFF:
                raise RngUnhealthy("adaptive proportion")


class KernelGenerator:
    """The operating system's cryptographic generator; there is no other, and no way to give one.

    Nothing drawn is kept for later: every deck reads its own bytes, so no two decks, tables or
    forked processes can share any.
    """

    def __init__(self) -> None:
        self._tests = HealthTests()
        self._failed: RngUnhealthy | None = None
        RNG_HEALTHY.set(1)

    @property
    def healthy(self) -> bool:
        """Whether no health test has failed since the start."""
        return self._failed is None

    def test_at_start(self) -> None:
        """Draw and throw away enough for the tests to see. Raises RngUnhealthy."""
        for _ in range(START_BYTES // WINDOW):
            self.draw(WINDOW)

    def draw(self, count: int) -> bytes:
        """`count` fresh bytes that passed the tests. Raises RngUnhealthy, from then on always."""
        self.require_healthy()
        try:
            drawn = _from_kernel(count)
            self._tests.look(drawn)
        except RngUnhealthy as failed:
            self._failed = failed
            RNG_HEALTHY.set(0)
            RNG_FAILURES.labels(failed.test).inc()
            raise
        RNG_BYTES.inc(count)
        return drawn

    def require_healthy(self) -> None:
        """Raises the RngUnhealthy of the first failure, if there was one."""
        if self._failed is not None:
            raise RngUnhealthy(self._failed.test)


def _from_kernel(count: int) -> bytes:
    try:
        return urandom(count)
    except OSError as error:
        raise RngUnhealthy("availability") from error
