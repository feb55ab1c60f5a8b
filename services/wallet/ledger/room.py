"""What is fixed for the life of the room."""

from services.runtime.postgres import Connection, Database


class OtherRoom(Exception):  # noqa: N818 (what was found)
    """The ledger belongs to a room with another number of shards."""


async def settle_shards(database: Database, shards: int) -> None:
    """Keep `shards` as the room's number, or raise OtherRoom if the ledger has another."""

    async def work(connection: Connection) -> int:
        await connection.execute(
            "INSERT INTO room (shards) VALUES (%s) ON CONFLICT DO NOTHING", (shards,)
        )
        cursor = await connection.execute("SELECT shards FROM room")
        row = await cursor.fetchone()
        return int(row[0]) if row else shards

    found = await database.transaction(work)
    if found != shards:
        raise OtherRoom(f"the ledger is of a room with {found} shards, not {shards}")
