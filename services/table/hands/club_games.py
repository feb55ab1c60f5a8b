"""Club games: they begin when all seats agreed on are taken, and end with a ranking that is paid
out (docs/rules.md, 8).

Everybody begins with the same stack and keeps his seat to the end: who is out of chips because his
place may have a prize, who is away because his chips are in play. Who sits out, or has left, is
dealt in, posts his antes, and checks or folds at once. What is not in the rules is ours: a game
that nobody plays any more, for as long as a seat is kept for who sits out, ends by the stacks held;
so does one that the operator closes.
"""

from enum import StrEnum
from typing import Final

from doorcard.table.v1 import table_pb2
from prometheus_client import Counter

from services.game.ending import final_ranking, is_over, out_in_hand, payout
from services.game.hand import Act, Hand
from services.game.invariant import require
from services.runtime.clock import MS_PER_S
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.table.draft import money
from services.table.draft.draft import Draft
from services.table.state import game_views
from services.table.state.formats import Game, Ranked
from services.table.state.state import RunningHand, SeatStatus, Table, TableStatus


class How(StrEnum):
    """How a game ends."""

    WON = "won"
    TIME_UP = "time_up"
    DESERTED = "deserted"
    CLOSED = "closed"
    """By the operator."""


WORDS: Final = {
    How.WON: "one player has all the chips",
    How.TIME_UP: "the agreed time is up",
    How.DESERTED: "nobody played any more: everybody has what was before him",
}

ENDED: Final = Counter(
    "doorcard_club_games_ended",
    "Club games that ended, by how: won, time_up, deserted, closed.",
    ["outcome"],
    registry=REGISTRY,
)
for _how in How:
    ENDED.labels(_how)


def begin(draft: Draft) -> None:
    """The first hand of the table begins: if it is a club game's, so does that."""
    blob = draft.table.blob
    agreed = blob.config.format
    if agreed is None or blob.game is not None:
        return
    duration_ms = agreed.duration_s * MS_PER_S
    blob.game = Game(draft.now_ms, draft.now_ms + duration_ms if duration_ms else 0)
    started = table_pb2.TableEvent.GameStarted(game=game_views.club_game(draft.table))
    draft.tell(game_started=started)


def act_for_absent(draft: Draft, hand: Hand) -> bool:
    """If the player to act is away, he checks, folds or brings in at once. Whether he did."""
    blob, want = draft.table.blob, hand.want
    if blob.game is None or blob.status is not TableStatus.OPEN or not isinstance(want, Act):
        return False
    if blob.seats[want.seat].status is not SeatStatus.SITTING_OUT:
        return False
    draft.tell_hand(hand.time_out(protect=False))
    return True


def hand_is_over(draft: Draft, running: RunningHand) -> None:
    """New stacks are before the players: who has none is out, and the game may be over."""
    table, game = draft.table, draft.table.blob.game
    if game is None:
        return
    before = dict(zip(running.seats, running.stacks, strict=True))
    after = {number: table.blob.seats[number].stack for number in running.seats}
    out = [sorted(group) for group in out_in_hand(before, after)]
    if out:
        game.out.append(out)
        # Only the last hand's: those of earlier ones were told then.
        places = list(game_views.places(table, [out]))
        draft.tell(eliminated=table_pb2.TableEvent.Eliminated(places=places))
    _end_if_over(draft, game)


def pass_time(draft: Draft) -> bool:
    """Between hands: whether the game is over by now, and paid out; then the table closes."""
    table, game = draft.table, draft.table.blob.game
    if game is None or table.hand is not None or table.blob.after_hand is not None:
        return False
    if 0 < game.deserted_until_ms <= draft.now_ms and not _time_is_up(draft, game):
        draft.not_before_ms = game.deserted_until_ms
        _pay_out(draft, game, How.DESERTED, WORDS[How.DESERTED])
    elif _end_if_over(draft, game):
        draft.not_before_ms = game.until_ms
    else:
        return False
    return True


def closed(draft: Draft) -> None:
    """The table closes: a game that is not over ends by the stacks held."""
    blob = draft.table.blob
    if blob.game is not None and not blob.game.ranking:
        _pay_out(draft, blob.game, How.CLOSED, blob.pause_reason)


def _end_if_over(draft: Draft, game: Game) -> bool:
    stacks = _stacks(draft.table)
    time_is_up = _time_is_up(draft, game)
    if not is_over(stacks, time_is_up=time_is_up):
        return False
    how = How.WON if is_over(stacks) else How.TIME_UP
    _pay_out(draft, game, how, WORDS[how])
    return True


def _pay_out(draft: Draft, game: Game, how: How, why: str) -> None:
    """Rank everybody and move the chips to where the prizes are; then the table closes."""
    table, seats = draft.table, draft.table.blob.seats
    agreed = table.blob.config.format
    if agreed is None:
        raise ValueError("a club game without a format")
    stacks = _stacks(table)
    ranking = final_ranking(stacks, game.out)
    played = how in (How.WON, How.TIME_UP)
    prizes = payout(sum(stacks.values()), agreed.prizes, ranking) if played else stacks
    nets = {number: prizes[number] - stack for number, stack in stacks.items()}
    require(sum(nets.values()) == 0, "the prizes of a club game are not its chips")
    if any(nets.values()):
        draft.outbox.append(money.prizes_of(table, nets, draft.now_ms))
    for number, net in nets.items():
        seats[number].stack += net
        seats[number].brought += net
    game.ranking = [
        Ranked(
            place.rank,
            seats[number].player_id,
            seats[number].name,
            stacks[number],
            prizes[number],
        )
        for place in ranking
        for number in place.players
    ]
    table.blob.after_hand, table.blob.pause_reason = TableStatus.CLOSING, why
    ended = table_pb2.TableEvent.GameEnded(game=game_views.club_game(table), reason=why)
    draft.tell(game_ended=ended)
    draft.once_committed.append(ENDED.labels(how).inc)
    draft.once_committed.append(
        lambda: logger.info("club_game_ended", table=table.table_id, how=str(how))
    )


def _time_is_up(draft: Draft, game: Game) -> bool:
    return 0 < game.until_ms <= draft.now_ms


def _stacks(table: Table) -> dict[int, int]:
    """By seat, ascending: what does not divide evenly goes by this order."""
    return {number: seat.stack for number, seat in sorted(table.blob.seats.items())}
