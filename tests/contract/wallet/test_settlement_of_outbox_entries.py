"""Outbox entries, each applied once, in order, whole; what cannot be blocks its table only."""

import asyncio
import random
from collections.abc import Callable
from uuid import uuid4

import pytest
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.errors import Aborted, AlreadyExists, DoorcardError, InvalidArgument
from tests.contract.wallet.conftest import (
    FAR_TABLE,
    OTHER_TABLE,
    SHARD,
    Outbox,
    Start,
    seat,
    two_seats,
)


async def test_a_hand_moves_escrow_and_rake(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        answer = await wallet.apply([outbox.hand({anna: -30, ben: 28}, rake=2)])
        assert not answer.parked
        assert (answer.progress.applied_seq, answer.progress.applied_id) == (3, outbox.last_id)
        assert await wallet.escrow() == {anna: 70, ben: 128}
        found = await wallet.sound()
        assert (found.house, found.rake) == (2, 2)


async def test_entries_already_applied_are_passed_over(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        outbox.hand({anna: -30, ben: 30})
        first = await wallet.apply(outbox.entries)
        outbox.hand({anna: 5, ben: -5})
        for _ in range(3):
            answer = await wallet.apply(outbox.entries)
        assert answer.progress.applied_seq == first.progress.applied_seq + 1
        assert await wallet.escrow() == {anna: 75, ben: 125}
        assert (await wallet.apply([])).progress == answer.progress


async def test_two_wallets_applying_the_same_batches_at_once_apply_each_once(start: Start) -> None:
    async with start() as one, start() as two:
        outbox, anna, ben = await two_seats(one)
        for number in range(60):
            outbox.hand({anna: -1, ben: 1} if number % 3 else {anna: 2, ben: -2})
        runs = [outbox.entries[:at] for at in (10, 20, 30, 40, 50, 60)]
        answers = await asyncio.gather(
            *(wallet.apply(run) for run in runs for wallet in (one, two)), return_exceptions=True
        )
        reasons = {each.reason for each in answers if isinstance(each, DoorcardError)}
        # Every run begins at the first entry, so none can leave a gap.
        assert reasons == set()
        await one.apply(outbox.entries)
        assert await one.escrow() == {anna: 100, ben: 100}
        assert one.sql("SELECT count(*) FROM journal WHERE kind = 5") == [(60,)]
        await two.sound()


async def test_an_entry_that_cannot_be_applied_parks_its_table_and_no_other(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        await wallet.deposit("carl", 50)
        elsewhere = await wallet.reserve("carl", 50, "carl-1", table_id=OTHER_TABLE)
        bad = outbox.hand({anna: -500, ben: 500})
        behind = outbox.hand({anna: -1, ben: 1})
        outbox.commit(elsewhere.reservation_id, table=OTHER_TABLE)
        answer = await wallet.apply(outbox.entries)
        assert [(each.entry_id, each.reason) for each in answer.parked] == [
            (bad.entry_id, "ESCROW_OVERDRAWN"),
            (behind.entry_id, "BEHIND_PARKED"),
        ]
        assert answer.progress.applied_seq == outbox.seq
        assert await wallet.escrow() == {anna: 100, ben: 100, "carl-1": 50}
        later = outbox.cash_out(anna, "anna", 100)
        answer = await wallet.apply([later])
        assert [each.reason for each in answer.parked] == ["BEHIND_PARKED"]
        inspected = await wallet.inspect()
        assert [each.seq for each in inspected.parked] == [3, 4, 6]
        ((content,),) = wallet.sql(f"SELECT content FROM parked WHERE seq = {bad.seq}")
        assert pb.LedgerEntry.FromString(content) == bad
        await wallet.sound()


Work = Callable[[Outbox, str, str], pb.LedgerEntry]
CANNOT_BE_APPLIED: dict[str, tuple[str, Work]] = {
    "sum not zero": ("SUM_NOT_ZERO", lambda out, a, b: out.hand({a: -30, b: 30}, rake=1)),
    "rake below zero": ("RAKE_BELOW_ZERO", lambda out, a, b: out.hand({a: -30, b: 31}, rake=-1)),
    "a sitting twice": (
        "SITTING_TWICE",
        lambda out, a, b: out.add(
            hand=pb.HandSettlement(
                hand_id=str(uuid4()),
                nets=[
                    pb.SittingNet(sitting_id=a, amount=-1),
                    pb.SittingNet(sitting_id=a, amount=1),
                ],
            )
        ),
    ),
    "an amount beyond the limit": (
        "BAD_AMOUNT",
        lambda out, a, b: out.hand({a: -(2**53), b: 2**53}),
    ),
    "an unknown sitting": ("SITTING_UNKNOWN", lambda out, a, b: out.hand({a: -1, "nobody": 1})),
    "another table's sitting": (
        "TABLE_DIFFERS",
        lambda out, a, b: out.hand({a: -1, b: 1}, table=OTHER_TABLE),
    ),
    "another currency": (
        "CURRENCY_DIFFERS",
        lambda out, a, b: out.hand({a: -1, b: 1}, currency="USD"),
    ),
    "a currency that does not exist": (
        "UNKNOWN_CURRENCY",
        lambda out, a, b: out.hand({a: -1, b: 1}, currency="XXX"),
    ),
    "a table of another shard": (
        "WRONG_SHARD",
        lambda out, a, b: out.hand({a: -1, b: 1}, table=FAR_TABLE),
    ),
    "a table id that is none": (
        "BAD_ID",
        lambda out, a, b: out.hand({a: -1, b: 1}, table="table\0\t1"),
    ),
    "a sitting id that cannot be kept": (
        "REFUSED_BY_DATABASE",
        lambda out, a, b: out.hand({a: -1, "b\0": 1}),
    ),
    "no hand id": ("BAD_ID", lambda out, a, b: out.hand({a: -1, b: 1}, hand_id="hand-1")),
    "nothing to do": ("UNKNOWN_ENTRY", lambda out, a, b: out.add()),
    "an unknown reservation": ("RESERVATION_UNKNOWN", lambda out, a, b: out.commit(str(uuid4()))),
    "cash-out of too little": ("AMOUNT_DIFFERS", lambda out, a, b: out.cash_out(a, "anna", 99)),
    "cash-out of too much": ("AMOUNT_DIFFERS", lambda out, a, b: out.cash_out(a, "anna", 101)),
    "cash-out to another player": (
        "PLAYER_DIFFERS",
        lambda out, a, b: out.cash_out(a, "ben", 100),
    ),
    "cash-out of an unknown sitting": (
        "SITTING_UNKNOWN",
        lambda out, a, b: out.cash_out("nobody", "anna", 0),
    ),
}


@pytest.mark.parametrize("case", CANNOT_BE_APPLIED)
async def test_what_cannot_be_applied_is_parked_whole_and_writes_no_money(
    start: Start, case: str
) -> None:
    reason, work = CANNOT_BE_APPLIED[case]
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        before = wallet.sql("SELECT count(*) FROM transfers")
        answer = await wallet.apply([work(outbox, anna, ben)])
        assert [each.reason for each in answer.parked] == [reason]
        assert answer.progress.applied_seq == outbox.seq
        assert wallet.sql("SELECT count(*) FROM transfers") == before
        assert await wallet.escrow() == {anna: 100, ben: 100}
        await wallet.sound()


async def test_a_hand_is_settled_once_whatever_entry_carries_it(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        hand_id = str(uuid4())
        outbox.hand({anna: -30, ben: 30}, hand_id=hand_id)
        outbox.hand({anna: -5, ben: 5})
        outbox.hand({anna: -30, ben: 30}, hand_id=hand_id)
        answer = await wallet.apply(outbox.entries)
        assert [each.reason for each in answer.parked] == ["HAND_SETTLED_BEFORE"]
        assert await wallet.escrow() == {anna: 65, ben: 135}
        await wallet.sound()


async def test_a_void_hand_moves_nothing_and_counts_as_settled(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        assert not (await wallet.apply([outbox.hand({})])).parked
        assert await wallet.escrow() == {anna: 100, ben: 100}


async def test_a_player_who_lost_everything_cashes_out_nothing_and_the_sitting_ends(
    start: Start,
) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        outbox.hand({anna: -100, ben: 100})
        outbox.cash_out(anna, "anna", 0)
        assert not (await wallet.apply(outbox.entries)).parked
        answer = await wallet.apply([outbox.cash_out(anna, "anna", 0)])
        assert [each.reason for each in answer.parked] == ["SITTING_ENDED"]
        assert await wallet.balance("anna") == (0, 0, 0)
        await wallet.sound()


async def test_a_batch_out_of_order_is_refused_and_writes_nothing(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        first, second, third = [outbox.hand({anna: -1, ben: 1}) for _ in range(3)]
        refusals: list[tuple[list[pb.LedgerEntry], str]] = [
            ([second, first], "BAD_BATCH"),
            ([first, third], "BAD_BATCH"),
            ([first, first], "BAD_BATCH"),
            ([second, third], "SEQ_GAP"),
            ([relinked(first, str(uuid4())), second], "LINK_BROKEN"),
            ([first, relinked(second, str(uuid4()))], "BAD_BATCH"),
            ([relinked(first, "")], "LINK_BROKEN"),
            ([renamed(first, "not a uuid")], "BAD_UUID"),
        ]
        for entries, reason in refusals:
            with pytest.raises(DoorcardError) as caught:
                await wallet.apply(entries)
            assert caught.value.reason == reason
        assert await wallet.escrow() == {anna: 100, ben: 100}
        assert (await wallet.apply([first, second, third])).progress.applied_seq == 5


def relinked(entry: pb.LedgerEntry, previous: str) -> pb.LedgerEntry:
    changed = pb.LedgerEntry()
    changed.CopyFrom(entry)
    changed.previous_entry_id = previous
    return changed


def renamed(entry: pb.LedgerEntry, entry_id: str) -> pb.LedgerEntry:
    changed = pb.LedgerEntry()
    changed.CopyFrom(entry)
    changed.entry_id = entry_id
    return changed


async def test_another_entry_at_the_applied_place_is_noticed(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        last = outbox.hand({anna: -1, ben: 1})
        await wallet.apply([last])
        with pytest.raises(DoorcardError) as caught:
            await wallet.apply([renamed(last, str(uuid4()))])
        assert caught.value.reason == "LINK_BROKEN"
        assert caught.value.metadata["applied_id"] == last.entry_id


async def test_a_batch_has_at_most_500_entries(start: Start) -> None:
    async with start() as wallet:
        outbox, anna, ben = await two_seats(wallet)
        for _ in range(501):
            outbox.hand({anna: -1, ben: 1} if outbox.seq % 2 else {anna: 1, ben: -1})
        with pytest.raises(InvalidArgument) as caught:
            await wallet.apply(outbox.entries)
        assert caught.value.reason == "BAD_BATCH"
        assert (await wallet.apply(outbox.entries[:500])).progress.applied_seq == 502


async def test_entries_of_another_epoch_are_refused(start: Start) -> None:
    async with start() as wallet:
        outbox = Outbox()
        entry = outbox.hand({})
        for epoch in (0, 1):
            with pytest.raises(Aborted) as caught:
                await wallet.apply([entry], epoch=1)
            assert caught.value.reason == "EPOCH_MOVED"
            assert caught.value.metadata["epoch"] == "0", epoch
        await wallet.open_epoch()
        await wallet.apply([entry])
        await wallet.open_epoch(1)
        with pytest.raises(Aborted):
            await wallet.apply([outbox.hand({})])
        assert not (await wallet.apply([Outbox().hand({})], epoch=2)).parked


async def test_an_epoch_opens_by_compare_and_set_and_tells_the_escrow(start: Start) -> None:
    async with start() as wallet:
        _, anna, ben = await two_seats(wallet)
        answers = await asyncio.gather(
            *(wallet.open_epoch(1) for _ in range(10)), return_exceptions=True
        )
        opened = [each for each in answers if not isinstance(each, BaseException)]
        assert len(opened) == 1
        assert {each.reason for each in answers if isinstance(each, DoorcardError)} == {
            "EPOCH_MOVED"
        }
        progress = opened[0].progress
        assert (progress.epoch, progress.applied_seq, progress.applied_id) == (2, 0, "")
        assert {each.sitting_id: each.amount for each in opened[0].escrow} == {anna: 100, ben: 100}
        assert {each.player_id for each in opened[0].escrow} == {"anna", "ben"}


async def test_a_new_shard_opened_by_many_at_once_opens_once(start: Start) -> None:
    async with start() as wallet:
        answers = await asyncio.gather(
            *(wallet.open_epoch(0) for _ in range(10)), return_exceptions=True
        )
        assert sum(isinstance(each, pb.OpenEpochResponse) for each in answers) == 1
        assert all(isinstance(each, pb.OpenEpochResponse | Aborted) for each in answers), answers


async def test_opening_an_epoch_again_with_the_same_request_gives_the_same_epoch(
    start: Start,
) -> None:
    async with start() as wallet:
        for _ in range(3):
            answer = await wallet.open_epoch(0, request_id="open-1")
            assert answer.progress.epoch == 1
        with pytest.raises(AlreadyExists) as caught:
            await wallet.open_epoch(0, shard=(SHARD + 1) % 8, request_id="open-1")
        assert caught.value.reason == "ID_REUSED"


async def test_sums_stay_zero_through_random_play_with_repeats_and_rubbish(start: Start) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    dice = random.Random(seed)
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        stacks: dict[str, int] = {}
        owners: dict[str, str] = {}
        for _ in range(12):
            for _ in range(dice.randrange(1, 4)):
                player, stack = f"player-{dice.randrange(5)}", dice.randrange(1, 200)
                sitting = await seat(wallet, outbox, player, stack)
                stacks[sitting], owners[sitting] = stack, player
            for _ in range(dice.randrange(8)):
                play(dice, outbox, stacks)
            if dice.random() < 0.5:
                gone = dice.choice(list(stacks))
                outbox.cash_out(gone, owners.pop(gone), stacks.pop(gone))
            if dice.random() < 0.3:
                outbox.hand({"nobody": -5}, rake=4, table=OTHER_TABLE)
            applied = (await wallet.inspect()).progress.applied_seq
            start_at = dice.randrange(max(0, applied - 5), applied + 1)
            answers = await asyncio.gather(
                *(wallet.apply(outbox.entries[start_at:]) for _ in range(dice.randrange(1, 4)))
            )
            assert {each.table_id for answer in answers for each in answer.parked} <= {OTHER_TABLE}
            held = {sitting: stack for sitting, stack in stacks.items() if stack}
            assert await wallet.escrow() == held
            await wallet.sound()


def play(dice: random.Random, outbox: Outbox, stacks: dict[str, int]) -> None:
    """A hand among everyone: losers pay at most what they have, one wins, the house takes some."""
    winner, *losers = dice.sample(list(stacks), k=len(stacks))
    nets = {loser: -dice.randrange(stacks[loser] + 1) for loser in losers}
    won = -sum(nets.values())
    rake = dice.randrange(won // 10 + 1)
    nets[winner] = won - rake
    for sitting, net in nets.items():
        stacks[sitting] += net
    outbox.hand(nets, rake)
