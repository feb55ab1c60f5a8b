"""What the lobby tells of a table's last hands: average pot, hands an hour, players on fourth
street.

Only running means are stored, five numbers however long the table plays: of the first hands each
counts the same, later each new one counts a sixteenth. Void hands count for nothing.
"""

from typing import Final, NamedTuple

from services.game.events import EventKind
from services.table.state.state import Recent, RunningHand, Table

LAST_HANDS: Final = 16
"""The means are of about so many."""
SCALE: Final = 256
"""Stored means are times this, so that what is rounded off does not add up."""
FOURTH_STREET: Final = 4
SPAN_MAX_MS: Final = 3_600_000
"""A hand that stood still for longer says nothing more about how fast the table plays."""
MS_PER_HOUR: Final = 3_600_000


class Shown(NamedTuple):
    """As the lobby shows them; 0 before the first hand."""

    average_pot: int = 0
    """Minor units, before rake."""
    hands_per_hour: int = 0
    """At the pace of these hands and of the pauses between them."""
    on_fourth_percent: int = 0
    """Players who saw fourth street, of those dealt in."""


def count(table: Table, running: RunningHand, ended_ms: int) -> None:
    """The running hand is over."""
    hand = table.hand
    if hand is None or hand.result is None or hand.result.voided:
        return
    before = table.blob.recent or Recent(0, 0, 0, 0, 0)
    hands = min(before.hands + 1, LAST_HANDS)

    def mean(known: int, new: int) -> int:
        return known + (new * SCALE - known) // hands

    table.blob.recent = Recent(
        hands,
        mean(before.pot, sum(pot.amount for pot in hand.result.pots)),
        mean(before.span_ms, min(max(ended_ms - running.started_ms, 0), SPAN_MAX_MS)),
        mean(before.dealt_in, len(running.seats)),
        mean(before.on_fourth, on_fourth(table)),
    )


def on_fourth(table: Table) -> int:
    """Players of the running hand who saw fourth street."""
    there = len(table.hand.seats) if table.hand is not None else 0
    for event, _ in table.played:
        if event[0] == EventKind.FOLDED:
            there -= 1
        elif event[0] == EventKind.STREET and event[1] == FOURTH_STREET:
            return there
    return 0


def shown(table: Table) -> Shown:
    """Of the table's last hands."""
    recent = table.blob.recent
    if recent is None:
        return Shown()
    between_ms = recent.span_ms // SCALE + table.blob.config.hand_pause_ms
    return Shown(
        average_pot=(recent.pot + SCALE // 2) // SCALE,
        hands_per_hour=MS_PER_HOUR // max(between_ms, 1),
        on_fourth_percent=(100 * recent.on_fourth + recent.dealt_in // 2) // recent.dealt_in,
    )
