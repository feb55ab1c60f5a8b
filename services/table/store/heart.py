"""Which replicas are alive, and what time it is at the store.

`{room}:replicas` has each replica's last beat by Redis time, `{room}:addresses` where clients reach
it. One script beats and tells who else is alive. Every node of a cluster has a clock of its own,
and the deadlines of its shards are compared with that one, so each is measured.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from prometheus_client import Gauge

from services.runtime import clock
from services.runtime.errors import DoorcardError, Unavailable
from services.runtime.metrics import REGISTRY
from services.table.store.line import Script, Wire

HEARTBEAT_S: Final = 0.5
DEAD_AFTER_MS: Final = 1500
FORGOTTEN_AFTER_MS: Final = 60_000
CLOCK_SAMPLES: Final = 16
SHORTEST_PAUSE_S: Final = 0.01
JUMP_US: Final = 100_000
"""Off by more than this from what was measured before, a clock was set: the old is of no use."""
SILENT_AFTER_MS: Final = 1000
"""After so long without a beat of our own the store was away, for the others too."""

REPLICAS_KEY: Final = "{room}:replicas"
ADDRESSES_KEY: Final = "{room}:addresses"

CLOCK_OFFSET: Final = Gauge(
    "doorcard_store_clock_offset_seconds",
    "Redis time less this machine's wall clock; in a cluster that of the node that is furthest "
    "away.",
    registry=REGISTRY,
)


class Sample(NamedTuple):
    """One comparison of clocks; the quickest says most exactly when Redis read its own."""

    took_us: int
    offset_us: int

    def step_from(self, before: "Sample") -> int:
        """How far the clock was set since an earlier comparison, as far as both are certain,
        microseconds; less than 0 for back.
        """
        far_us = self.offset_us - before.offset_us
        doubt_us = (self.took_us + before.took_us) // 2
        return max(0, far_us - doubt_us) if far_us > 0 else min(0, far_us + doubt_us)


class Heart:
    """A replica's heart.

    script: `heartbeat.lua`. `address` is where clients reach this replica, host:port, or "".
    """

    def __init__(self, wire: Wire, script: Script, replica_id: str) -> None:
        self.address = ""
        self.live: Mapping[str, str] = {}
        """The replicas that were alive at the last beat, this one too -> their addresses."""
        self.changed: Callable[[], None] = _nobody
        """Called on the loop whenever `live` is another."""
        self.measured: Callable[[], None] = _nobody
        """Called on the loop after each comparison of clocks."""
        self._wire = wire
        self._script = script
        self._replica_id = replica_id
        self._samples: dict[str, list[Sample]] = {}
        self._offsets_us: dict[str, int] = {}
        self._next_death_ms = 0
        self._beat_ms = 0
        """When the last beat was answered."""
        self._everyone_until_ms = 0
        """Until then nobody is taken for dead: the store was away."""
        self._retired = False

    def now_ms(self, key: str = REPLICAS_KEY) -> int:
        """Redis time where a key is, from this machine's monotonic clock and the measured offset.

        Raises Unavailable (STORE_AWAY) before the first measurement.
        """
        offset_us = self._offsets_us.get(self._wire.node_of(key))
        if offset_us is None:
            # A node that is new: the room's own is close enough until the next beat.
            offset_us = next(iter(self._offsets_us.values()), None)
        if offset_us is None:
            raise Unavailable("STORE_AWAY", "the store's clock is not yet measured")
        return (_monotonic_us() + offset_us) // 1000

    def reading(self, key: str) -> Sample | None:
        """The comparison of clocks that `now_ms` goes by where a key is; None before the first."""
        samples = self._samples.get(self._wire.node_of(key))
        return min(samples) if samples else None

    async def beat(self) -> None:
        """Say that this replica is alive, see who else is, and compare clocks."""
        sent_us = _monotonic_us()
        now_us, *told = await self._wire.run(
            self._script,
            (REPLICAS_KEY, ADDRESSES_KEY),
            (self._replica_id, self.address, FORGOTTEN_AFTER_MS, DEAD_AFTER_MS),
            durable=False,
        )
        own_node = self._wire.node_of(REPLICAS_KEY)
        self._measured(own_node, sent_us, int(now_us))
        others = [node for node in self._wire.nodes() if node != own_node]
        await asyncio.gather(*map(self._measure, others))
        for node in self._offsets_us.keys() - {own_node, *others}:
            del self._offsets_us[node], self._samples[node]
        self._show_offset()
        self.measured()
        self._see(told)

    async def run(self) -> None:
        """Beat until cancelled, and at once when another replica would be dead by now."""
        while True:
            to_death_s = (self._next_death_ms - self.now_ms()) / clock.MS_PER_S
            await asyncio.sleep(max(SHORTEST_PAUSE_S, min(HEARTBEAT_S, to_death_s)))
            if self._retired:
                continue
            try:
                await self.beat()
            except DoorcardError:
                self._next_death_ms = self.now_ms() + DEAD_AFTER_MS

    async def retire(self) -> None:
        """This replica goes away; the others need not wait until it is dead."""
        self._retired = True
        await asyncio.gather(
            self._wire.ask("ZREM", REPLICAS_KEY, self._replica_id),
            self._wire.ask("HDEL", ADDRESSES_KEY, self._replica_id),
        )

    async def ask_live(self) -> list[str]:
        """The replicas whose heart beat within the last 1.5 s, asked now."""
        since = self.now_ms() - DEAD_AFTER_MS
        found = await self._wire.ask("ZRANGE", REPLICAS_KEY, since, "+inf", "BYSCORE")
        return [name.decode() for name in found]

    def _see(self, told: list[bytes]) -> None:
        ids, beats, addresses = told[::3], told[1::3], told[2::3]
        live = {
            name.decode(): address.decode() for name, address in zip(ids, addresses, strict=True)
        }
        now_ms = self.now_ms()
        if self._beat_ms and now_ms - self._beat_ms > SILENT_AFTER_MS:
            self._everyone_until_ms = now_ms + DEAD_AFTER_MS
        self._beat_ms = now_ms
        # Within what it can be, should the store's clock have been set back.
        self._everyone_until_ms = min(self._everyone_until_ms, now_ms + DEAD_AFTER_MS)
        if now_ms < self._everyone_until_ms:
            live = {**self.live, **live}
        of_others = [
            int(float(beat))
            for name, beat in zip(ids, beats, strict=True)
            if name.decode() != self._replica_id
        ]
        self._next_death_ms = min(of_others, default=self.now_ms()) + DEAD_AFTER_MS + 1
        if live != self.live:
            self.live = live
            self.changed()

    async def _measure(self, node: str) -> None:
        sent_us = _monotonic_us()
        try:
            seconds, micros = await self._wire.ask_node(node, "TIME")
        except DoorcardError:
            return
        self._measured(node, sent_us, int(seconds) * 1_000_000 + int(micros))

    def _measured(self, node: str, sent_us: int, redis_us: int) -> None:
        came_us = _monotonic_us()
        sample = Sample(came_us - sent_us, redis_us - (sent_us + came_us) // 2)
        kept = self._samples.get(node, [])[1 - CLOCK_SAMPLES :]
        if kept and abs(sample.step_from(min(kept))) > JUMP_US:
            kept = []
        samples = self._samples[node] = [*kept, sample]
        self._offsets_us[node] = min(samples).offset_us

    def _show_offset(self) -> None:
        wall_us = clock.now_ms() * 1000 - _monotonic_us()
        furthest_us = max((each - wall_us for each in self._offsets_us.values()), key=abs)
        CLOCK_OFFSET.set(furthest_us / 1_000_000)


def _monotonic_us() -> int:
    return int(clock.monotonic_s() * 1_000_000)


def _nobody() -> None:
    """Nobody listens yet."""
