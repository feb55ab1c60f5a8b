"""What came of a load, for people and for programs."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one load. Times of an action are from when it was due to its answer."""

    tables: int
    players: int
    gateways: int
    """0: a stream for each player."""
    pace: str
    """`thinking`, `flat out` or `rate`."""
    rate: float
    """Actions a second that were wanted; 0 without a rate."""
    seconds: float
    """How long was played."""
    actions: int
    actions_per_second: float
    owed: int
    """Actions that were due at the end and had found no table free."""
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    hands: int
    """Hands that ended while it was played."""
    refusals: dict[str, int]
    """Refused actions by reason."""
    resyncs: int
    """Snapshots in place of updates that were missed."""
    reconnects: int
    """Streams opened again."""
    seed: int
    stopped: bool
    """Ended before its time by a signal."""
    restarts: dict[str, int] = field(default_factory=dict)
    """Processes of the room that were started again."""
    escrow_difference: int = 0
    """Between escrow and the chips at these tables, sitting by sitting; minor units."""
    ledger_difference: int = 0
    """Players, escrow and house, less what was deposited; 0 in a room that others use."""
    balance_difference: int = 0
    """Between the ledger's balances and the sums of its transfers."""
    faults: tuple[str, ...] = ()
    """What is wrong, in words."""

    @property
    def ok(self) -> bool:
        """Nothing is wrong; every difference is 0."""
        return not self.faults

    def as_json(self) -> str:
        """One object."""
        return json.dumps(asdict(self) | {"ok": self.ok}, indent=2)

    def write(self, path: Path) -> None:
        """As JSON, whole or not at all."""
        part = path.with_name(f"{path.name}.part")
        part.write_text(self.as_json() + "\n", encoding="utf-8")
        os.replace(part, path)

    def lines(self) -> list[str]:
        """For people."""
        differences = self.escrow_difference, self.ledger_difference, self.balance_difference
        wanted = f" of {self.rate:g}/s wanted, {self.owed} owed" if self.rate else ""
        through = f"{self.gateways} gateways" if self.gateways else f"{self.players} seat streams"
        return [
            f"{'OK' if self.ok else 'NOT OK'}: {self.tables} tables through {through},"
            f" {self.pace}, {self.seconds:.1f} s{', stopped' if self.stopped else ''}",
            f"  {self.actions} actions, {self.actions_per_second}/s{wanted}; {self.hands} hands",
            f"  p50 {self.p50_ms} ms, p90 {self.p90_ms} ms, p99 {self.p99_ms} ms,"
            f" p99.9 {self.p999_ms} ms, max {self.max_ms} ms",
            f"  refusals {self.refusals or 0}, resyncs {self.resyncs}, reconnects"
            f" {self.reconnects}, restarts {self.restarts or 0}",
            "  differences: escrow {}, ledger {}, balances {}".format(*differences),
            *(f"  {fault}" for fault in self.faults),
        ]
