"""What players of the tests choose when nothing depends on it."""

from doorcard.game.v1 import game_pb2
from doorcard.table.v1 import table_pb2


def passive(turn: table_pb2.Turn) -> game_pb2.Action:
    """The cheapest way to stay in: bring in, check, or call."""
    if turn.legal.bring_in:
        return game_pb2.Action(kind=game_pb2.ACTION_KIND_BRING_IN)
    if turn.legal.check:
        return game_pb2.Action(kind=game_pb2.ACTION_KIND_CHECK)
    return game_pb2.Action(kind=game_pb2.ACTION_KIND_CALL)
