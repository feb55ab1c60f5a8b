"""Club games at random, to their end: no unit is lost, and the ranking is what the hands say.

Players act, sit out, leave and come back; clocks run out, services fail, hands are void, tables
pause, another replica is quicker. The ranking is worked out anew from the records of the hands.
"""

import contextlib
import random

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.history.v1 import history_pb2
from doorcard.table.v1 import table_pb2
from structlog.testing import capture_logs

from services.game.ending import final_ranking, out_in_hand, payout
from services.game.hand import Act
from services.runtime.errors import FailedPrecondition
from services.table.hands.club_games import WORDS, How
from services.table.state.state import TableStatus
from services.table.state.times import STANDARD, SeatTimes
from tests.property.test_table_money import PLAYERS, Chaos, ShadowLedger
from tests.unit.table.rooms import bold

STEPS = 300
HANDS_MAX = 300
PRIZES = ((), (60, 40), (50, 30, 20), (34, 33, 33))


def agreed_on(seed: int) -> table_pb2.TableFormat:
    """A freeze-out, or every third time a timed game, of three to five players."""
    rng = random.Random(seed)
    agreed = table_pb2.TableFormat(players=rng.randrange(3, 6), prizes=rng.choice(PRIZES))
    agreed.kind = table_pb2.FORMAT_KIND_TIMED if seed % 3 == 0 else table_pb2.FORMAT_KIND_FREEZE_OUT
    if agreed.kind == table_pb2.FORMAT_KIND_TIMED:
        agreed.duration.FromSeconds(rng.choice((60, 120, 600)))
    return agreed


async def played(seed: int) -> tuple[Chaos, ShadowLedger, table_pb2.TableFormat]:
    """A game from its creation to its end."""
    # Most games stand still while everybody is away, until somebody is back.
    times = STANDARD if seed % 4 == 0 else SeatTimes(away_ms=0)
    chaos, agreed = Chaos(seed, times), agreed_on(seed)
    chaos.more = ["act"] * 40 + ["tick"] * 6 + ["sit_back"] * 8
    stake = game_pb2.Stake(
        name="high",
        ante=10,
        bring_in=20,
        small_bet=40,
        big_bet=80,
        buy_in_min=203,
        buy_in_max=203,
    )
    chaos.tables = [await chaos.room.create(format=agreed, stake_name="", stake=stake, seats=5)]
    ledger = ShadowLedger(chaos.room)
    await chaos.room.seat(*PLAYERS[: agreed.players], buy_in=203)
    await chaos.room.start_hand()
    for _ in range(STEPS):
        if chaos.room.table.blob.status is TableStatus.CLOSED:
            break
        await chaos.step()
        ledger.check()
    await finish(chaos, ledger)
    return chaos, ledger, agreed


async def finish(chaos: Chaos, ledger: ShadowLedger) -> None:
    """Everybody is back, and plays boldly until it is over."""
    room = chaos.room
    for service in (room.shuffler, room.showdown, room.wallet):
        service.failing = None
    for _ in range(HANDS_MAX):
        if room.table.blob.status is TableStatus.CLOSED:
            return
        await room.resume()
        for player in PLAYERS:
            with contextlib.suppress(FailedPrecondition):
                await room.tables.sit_back(room.table_id, player)
        while room.table.hand is not None:
            table = room.table
            if table.hand is not None and isinstance(table.hand.want, Act):
                await room.act(*bold(table.hand.want))
            else:
                await chaos.do_tick()
        await chaos.do_tick()
        ledger.check()


@pytest.mark.parametrize("seed", range(24))
async def test_a_game_ends_with_every_unit_and_everybody_in_his_place(seed: int) -> None:
    print(f"seed {seed}")
    with capture_logs():
        chaos, ledger, agreed = await played(seed)
    blob = chaos.room.table.blob
    assert blob.status is TableStatus.CLOSED, "it did not end"
    assert blob.game is not None
    assert not blob.seats
    assert not any(ledger.escrow.values())
    assert ledger.rake == 0
    assert sum(ledger.paid_back.values()) == sum(ledger.brought.values())

    ranking = blob.game.ranking
    print(f"{blob.hands} hands: {blob.pause_reason}")
    assert len(ranking) == agreed.players
    names = [each.player_id for each in ranking]
    stacks, out = as_recorded(chaos, names)
    places = final_ranking(stacks, out)
    assert [(each.rank, each.stack) for each in ranking] == [
        (place.rank, stacks[player]) for place in places for player in place.players
    ]
    assert {each.player_id: each.rank for each in ranking} == {
        player: place.rank for place in places for player in place.players
    }
    assert sum(each.prize for each in ranking) == 203 * agreed.players == sum(stacks.values())
    prizes = sorted(each.prize for each in ranking)
    if blob.pause_reason == WORDS[How.DESERTED]:
        assert prizes == sorted(stacks.values())
    else:
        assert blob.pause_reason in (WORDS[How.WON], WORDS[How.TIME_UP])
        paid = payout(203 * agreed.players, tuple(agreed.prizes) or (100,), places)
        assert prizes == sorted(paid.values())


def as_recorded(
    chaos: Chaos, players: list[str]
) -> tuple[dict[str, int], list[tuple[tuple[str, ...], ...]]]:
    """Stacks at the end, and who went out in which hand, by the records of the hands alone."""
    assert set(players) <= set(PLAYERS)
    stacks, out = dict.fromkeys(players, 203), []
    for entry in chaos.room.store.outbox:
        if not entry.HasField("hand"):
            continue
        record: history_pb2.HandRecord = entry.hand
        before = {each.player_id: each.starting_stack for each in record.players}
        after = {each.player_id: each.finishing_stack for each in record.players}
        assert all(stacks[player] == stack for player, stack in before.items())
        # Whoever has chips is dealt in.
        assert set(before) == {player for player, stack in stacks.items() if stack}
        stacks |= after
        out.append(out_in_hand(before, after))
    return stacks, out
