"""Closed tables leave the lobby, whatever one of them is like."""

from typing import cast

from doorcard.table.v1 import table_pb2

from services.table.lobby.closed_tables import ClosedTables
from services.table.state.state import BrokenConservation, Table, tombstone
from services.table.store.store import Store
from services.table.tables.tables import Tables

SHARD = 3
NOW_MS = 1_000_000_000


class Lobby:
    """A shard's lobby of closed tables, of which one cannot be read."""

    def __init__(self, *ids: str, broken: str) -> None:
        summary = table_pb2.TableSummary(state=table_pb2.TABLE_STATE_CLOSED)
        self.lines = dict.fromkeys(ids, b"\0" + summary.SerializeToString())
        self.broken = broken

    def now_ms(self) -> int:
        return NOW_MS

    async def lobby_of(self, shard: int) -> dict[str, bytes]:
        assert shard == SHARD
        return dict(self.lines)

    async def unlist(self, _shard: int, table_id: str) -> None:
        del self.lines[table_id]

    async def read(self, table_id: str) -> Table:
        if table_id == self.broken:
            raise BrokenConservation("a chip is missing")
        return Table(table_id, None, tombstone("XTS"))


async def test_a_closed_table_that_cannot_be_read_keeps_no_other_in_the_lobby() -> None:
    lobby = Lobby("a", "b", "c", broken="b")
    looking = ClosedTables(cast(Store, lobby), cast(Tables, lobby), kept_ms=1000)
    await looking.look_at(SHARD)
    assert set(lobby.lines) == {"b"}
