"""What a demo found out, as figures that a script can read."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of one demo; money in minor units of one currency."""

    hands: int
    """Hands that were played to their end."""
    actions: int
    """Actions that the tables accepted from the bots."""
    actions_per_second: float
    action_p50_ms: float
    """Median from a bot's sending to its answer, retries included."""
    action_p99_ms: float
    settled_hands: int
    """Hands that are in the archive, and so in the ledger before."""
    commits_by_replica: dict[str, int]
    conflicts: int
    """Commits that another replica had overtaken and that were tried again."""
    ledger_difference: int
    """Players + escrow + house, less what the bots deposited and did not withdraw."""
    escrow_difference: int
    """Between escrow and the chips at the tables, sitting by sitting."""
    rake_total: int
    mails_sent: int
    mails_asked: int
    refusals: dict[str, int] = field(default_factory=dict)
    """Actions refused by reason; a late action is a fair one."""
    restarts: dict[str, int] = field(default_factory=dict)
    """Processes that ended in the middle and were started again."""
    seed: int = 0
    faults: tuple[str, ...] = ()
    """What is wrong, in words."""
    ok: bool = False
    """Everything settled, every mail arrived, both differences 0."""

    def write(self, path: Path) -> None:
        """As JSON, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.part")
        part.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        os.replace(part, path)


def percentile_ms(latencies_s: Iterable[float], share: float) -> float:
    """The nearest-rank percentile in milliseconds, three decimals; 0 of nothing."""
    ordered = sorted(latencies_s)
    if not ordered:
        return 0.0
    rank = min(len(ordered) - 1, int(share * len(ordered)))
    return round(ordered[rank] * 1000, 3)
