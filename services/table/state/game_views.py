"""Club games as players see them: nothing of a game's state is hidden from anybody."""

from collections.abc import Iterable, Iterator

from doorcard.table.v1 import table_pb2

from services.runtime.clock import timestamp
from services.table.state.formats import FormatKind, Ranked
from services.table.state.state import Config, Table


def format_of(config: Config) -> table_pb2.TableFormat:
    """The format that a table was created with."""
    agreed = config.format
    if agreed is None:
        return table_pb2.TableFormat(kind=table_pb2.FORMAT_KIND_CASH)
    shown = table_pb2.TableFormat(
        kind=table_pb2.FormatKind.ValueType(agreed.kind),
        players=agreed.players,
        prizes=agreed.prizes,
    )
    if agreed.kind is FormatKind.TIMED:
        shown.duration.FromSeconds(agreed.duration_s)
    return shown


def club_game(table: Table) -> table_pb2.ClubGame | None:
    """How the club game stands; None at a cash table."""
    if table.blob.config.format is None:
        return None
    game = table.blob.game
    if game is None:
        stacks = (seat.stack for seat in table.blob.seats.values())
        return table_pb2.ClubGame(prize_pool=sum(stacks))
    shown = table_pb2.ClubGame(
        started=timestamp(game.started_ms),
        prize_pool=sum(stack for _, _, stack in table.money())
        or sum(each.stack for each in game.ranking),
        ranking=_final(game.ranking) if game.ranking else places(table, game.out),
        over=bool(game.ranking),
    )
    if game.until_ms:
        shown.until.CopyFrom(timestamp(game.until_ms))
    return shown


def places(table: Table, out: Iterable[list[list[int]]]) -> Iterator[table_pb2.GamePlace]:
    """The places of those who went out in the last hands given, the better first.

    out: as in `Game.out`, up to the last hand.
    """
    seats = table.blob.seats
    rank = 1 + sum(1 for seat in seats.values() if seat.stack)
    for hand in reversed(list(out)):
        for group in hand:
            for number in group:
                seat = seats[number]
                yield table_pb2.GamePlace(rank=rank, player_id=seat.player_id, name=seat.name)
            rank += len(group)


def _final(ranking: Iterable[Ranked]) -> Iterator[table_pb2.GamePlace]:
    for each in ranking:
        yield table_pb2.GamePlace(
            rank=each.rank,
            player_id=each.player_id,
            name=each.name,
            stack=each.stack,
            prize=each.prize,
        )
