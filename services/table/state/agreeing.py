"""The format that a CreateTable request asks for, checked whole."""

from itertools import pairwise
from typing import Final

from doorcard.table.v1 import table_pb2

from services.game.rulebook import BuyIn, Rulebook
from services.game.setup import SEATS_MAX
from services.table.state.formats import WINNER_TAKES_ALL, Format, FormatKind

DURATION_S_MIN: Final = 60
DURATION_S_MAX: Final = 7 * 86_400
WHOLE: Final = 100

Faults = list[tuple[str, str]]


def check_format(
    request: table_pb2.CreateTableRequest, rulebook: Rulebook | None, faults: Faults
) -> Format | None:
    """The club game that is asked for; None for a cash table. What is wrong is added to faults."""
    asked = request.format
    if asked.kind in (table_pb2.FORMAT_KIND_UNSPECIFIED, table_pb2.FORMAT_KIND_CASH):
        if asked.players or asked.prizes or asked.HasField("duration"):
            faults.append(("format", "a cash table has no players, duration or prizes"))
        return None
    if asked.kind not in table_pb2.FormatKind.values():
        faults.append(("format.kind", "must be one that the room knows"))
        return None
    kind = FormatKind(asked.kind)
    if rulebook is not None and rulebook.buy_in is not BuyIn.EQUAL_STACKS:
        faults.append(("format.kind", "a club game needs a rulebook with equal stacks"))
    if request.rake_schedule_id:
        faults.append(("rake_schedule_id", "no rake is taken from a club game"))
    players = asked.players or request.seats
    if not 2 <= players <= min(request.seats, SEATS_MAX):
        faults.append(("format.players", "must be 0, or 2 to the number of seats"))
    prizes = tuple(asked.prizes) or WINNER_TAKES_ALL
    falls = all(low <= high for high, low in pairwise(prizes))
    if not falls or prizes[-1] < 1 or sum(prizes) != WHOLE or len(prizes) > players:
        faults.append(
            ("format.prizes", "must be 100 together, none above the one before, one for a player")
        )
    return Format(kind, players, _duration_s(asked, kind, faults), prizes)


def _duration_s(asked: table_pb2.TableFormat, kind: FormatKind, faults: Faults) -> int:
    duration = asked.duration
    if kind is FormatKind.FREEZE_OUT:
        if asked.HasField("duration"):
            faults.append(("format.duration", "a freeze-out has none"))
        return 0
    if duration.nanos or not DURATION_S_MIN <= duration.seconds <= DURATION_S_MAX:
        faults.append(
            ("format.duration", f"must be {DURATION_S_MIN} to {DURATION_S_MAX} whole seconds")
        )
    return duration.seconds
