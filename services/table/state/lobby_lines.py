"""A table's line in the lobby as it is stored: what everybody may see of it, and who has a seat.

One byte that counts the seats taken, `player_digest` of each of their players, then a serialized
TableSummary. The digests are for finding a player's own seats; they are shown to nobody, and what
is found by one is looked up at the table.
"""

from typing import Final, NamedTuple

from doorcard.table.v1 import table_pb2

from services.game.setup import SEATS_MAX
from services.table.state import views
from services.table.state.state import Table, player_digest

DIGEST_BYTES: Final = len(player_digest(""))


class Line(NamedTuple):
    """A stored line, read."""

    stored: bytes
    summary: table_pb2.TableSummary
    told: bytes
    """The summary as an encoded WatchLobbyResponse; several one after another are one."""
    players: tuple[bytes, ...]
    """`player_digest` of everybody who has a seat."""


def line_of(table: Table) -> bytes:
    """The table's line, to be stored."""
    seats = table.blob.seats
    players = b"".join(player_digest(seat.player_id) for seat in seats.values())
    return bytes((len(seats),)) + players + views.summary(table).SerializeToString()


def read_line(stored: bytes) -> Line:
    """A line as it was stored. Raises ValueError for what is none."""
    if stored and stored[0] > SEATS_MAX:
        # As lines were stored at first: the summary alone, which begins with a higher byte.
        return _line(stored, stored, ())
    end = 1 + stored[0] * DIGEST_BYTES if stored else 1
    if len(stored) < end:
        raise ValueError("a line of the lobby is cut short")
    players = tuple(stored[at : at + DIGEST_BYTES] for at in range(1, end, DIGEST_BYTES))
    return _line(stored, stored[end:], players)


def _line(stored: bytes, serialized: bytes, players: tuple[bytes, ...]) -> Line:
    try:
        summary = table_pb2.TableSummary.FromString(serialized)
    except Exception as error:
        raise ValueError("a line of the lobby is no summary") from error
    told = table_pb2.WatchLobbyResponse(tables=[summary]).SerializeToString()
    return Line(stored, summary, told, players)
