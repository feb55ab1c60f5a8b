"""Whose rake it was: by day of the room, stake, table and player."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.errors import InvalidArgument, NotFound, PermissionDenied
from services.wallet.ledger import settlement
from tests.contract.wallet.conftest import (
    OTHER_TABLE,
    SERVICE,
    TABLE,
    Outbox,
    Start,
    Wallet,
    refused,
)

DAY, STAKE, BY_TABLE, PLAYER = (
    pb.RAKE_GROUPING_DAY,
    pb.RAKE_GROUPING_STAKE,
    pb.RAKE_GROUPING_TABLE,
    pb.RAKE_GROUPING_PLAYER,
)


async def lines(wallet: Wallet, by: Any, size: int = 2, **fields: Any) -> list[pb.RakeLine]:
    """Every page of a report."""
    found: list[pb.RakeLine] = []
    token = ""
    while True:
        request = pb.ReportRakeRequest(
            by=by, page_size=size, page_token=token, **{"currency": "EUR", **fields}
        )
        page: pb.ReportRakeResponse = await wallet.call(
            "ReportRake", request, "audrey", ["auditor"]
        )
        found += page.lines
        token = page.next_page_token
        if not token:
            return found


async def seats(wallet: Wallet, outbox: Outbox, table: str, *players: str) -> list[str]:
    """Sittings at a table, each with 1,000."""
    sittings = []
    for player in players:
        await wallet.deposit(player, 1000)
        sittings.append(str(uuid4()))
        reservation = await wallet.reserve(player, 1000, sittings[-1], table_id=table)
        outbox.commit(reservation.reservation_id, table=table)
    return sittings


def at(text: str) -> Any:
    stamp = pb.HandSettlement().ended
    stamp.FromDatetime(datetime.fromisoformat(text).replace(tzinfo=UTC))
    return stamp


def hand(
    outbox: Outbox,
    put_in: dict[str, int],
    winner: str,
    rake: int,
    ended: str,
    table: str = TABLE,
    **more: Any,
) -> pb.LedgerEntry:
    """A hand whose winner takes everything but the rake."""
    nets = {sitting: -amount for sitting, amount in put_in.items()}
    nets[winner] += sum(put_in.values()) - rake
    entry = outbox.hand(nets, rake, table=table)
    entry.hand.MergeFrom(
        pb.HandSettlement(
            dealt_in=[
                pb.SittingShare(sitting_id=sitting, contributed=amount)
                for sitting, amount in put_in.items()
            ],
            ended=at(ended),
            **{"game": game_pb2.GAME_HIGH, "stake": "5/10", **more},
        )
    )
    return entry


async def some_hands(wallet: Wallet, time_zone: str = "UTC") -> None:
    """Two tables, three players, four hands in two days."""
    outbox = Outbox()
    await wallet.open_epoch()
    anna, ben, carl = await seats(wallet, outbox, TABLE, "anna", "ben", "carl")
    dora, bea = await seats(wallet, outbox, OTHER_TABLE, "dora", "ben")
    hand(outbox, {anna: 40, ben: 40, carl: 0}, anna, 4, "2026-03-28T22:30:00")
    hand(outbox, {anna: 10, ben: 20, carl: 20}, ben, 1, "2026-03-28T23:30:00")
    hand(outbox, {anna: 5, ben: 5, carl: 0}, ben, 0, "2026-03-29T12:00:00")
    razz = {"game": game_pb2.GAME_RAZZ, "stake": "1/2"}
    hand(outbox, {dora: 30, bea: 30}, bea, 3, "2026-03-29T13:00:00", OTHER_TABLE, **razz)
    assert not (await wallet.apply(outbox.entries)).parked
    await wallet.upkeep(time_zone=time_zone)


async def test_rake_by_stake_table_and_player_adds_up_to_the_ledgers(start: Start) -> None:
    async with start() as wallet:
        await some_hands(wallet)
        by_stake = await lines(wallet, STAKE)
        assert [(each.game, each.stake, each.hands, each.rake) for each in by_stake] == [
            (game_pb2.GAME_HIGH, "5/10", 3, 5),
            (game_pb2.GAME_RAZZ, "1/2", 1, 3),
        ]
        by_table = await lines(wallet, BY_TABLE)
        assert {each.table_id: (each.hands, each.rake) for each in by_table} == {
            TABLE: (3, 5),
            OTHER_TABLE: (1, 3),
        }
        by_player = await lines(wallet, PLAYER)
        assert [
            (each.player_id, each.hands, each.rake, each.dealt_thousandths) for each in by_player
        ] == [
            ("anna", 3, 5, 1334 + 334),
            ("ben", 4, 8, 1333 + 333 + 1500),
            ("carl", 3, 5, 1333 + 333),
            ("dora", 1, 3, 1500),
        ]
        assert [each.contributed_thousandths for each in by_player] == [
            2000 + 200,
            2000 + 400 + 1500,
            400,
            1500,
        ]
        total = (await wallet.sound()).rake
        assert total == 8
        for reported in (by_stake, by_table):
            assert sum(each.rake for each in reported) == total
        assert sum(each.dealt_thousandths for each in by_player) == 1000 * total
        assert sum(each.contributed_thousandths for each in by_player) == 1000 * total


@pytest.mark.parametrize(
    ("time_zone", "days"),
    [
        ("UTC", {"2026-03-28": 5, "2026-03-29": 3}),
        ("Europe/Berlin", {"2026-03-28": 4, "2026-03-29": 4}),
        ("America/New_York", {"2026-03-28": 5, "2026-03-29": 3}),
        ("Asia/Tokyo", {"2026-03-29": 8}),
    ],
)
async def test_a_day_is_the_rooms_day(start: Start, time_zone: str, days: dict[str, int]) -> None:
    async with start() as wallet:
        await some_hands(wallet, time_zone)
        found = await lines(wallet, DAY, size=1)
        assert {each.day: each.rake for each in found} == days


async def test_reports_are_narrowed_down(start: Start) -> None:
    async with start() as wallet:
        await some_hands(wallet)
        first = await lines(wallet, DAY, last_day="2026-03-28")
        assert [(each.day, each.rake) for each in first] == [("2026-03-28", 5)]
        second = await lines(wallet, DAY, first_day="2026-03-29", table_id=TABLE)
        assert [(each.day, each.hands, each.rake) for each in second] == [("2026-03-29", 1, 0)]
        bens = await lines(wallet, BY_TABLE, player_id="ben")
        assert {each.table_id: each.dealt_thousandths for each in bens} == {
            TABLE: 1666,
            OTHER_TABLE: 1500,
        }
        annas = await lines(wallet, DAY, player_id="anna", first_day="2026-03-28")
        assert [(each.day, each.contributed_thousandths) for each in annas] == [
            ("2026-03-28", 2200),
            ("2026-03-29", 0),
        ]
        assert await lines(wallet, PLAYER, currency="USD") == []


async def test_hands_are_counted_once_however_often_they_are_sealed_around(start: Start) -> None:
    async with start() as wallet:
        await some_hands(wallet)
        for _ in range(3):
            await wallet.deposit("anna", 1)
            await wallet.upkeep()
        assert sum(each.hands for each in await lines(wallet, DAY)) == 4


async def test_a_reversed_hand_counts_against_the_day_of_its_reversal(start: Start) -> None:
    async with start() as wallet:
        await some_hands(wallet)
        for player in ("anna", "ben", "carl"):
            await wallet.deposit(player, 100)
        ((hand_id,),) = wallet.sql("SELECT min(entry) FROM hands")
        await wallet.reverse(str(hand_id))
        await wallet.upkeep()
        today = datetime.now(UTC).date().isoformat()
        found = {each.day: (each.hands, each.rake) for each in await lines(wallet, DAY)}
        assert found[today] == (-1, -4)
        by_player = {each.player_id: each for each in await lines(wallet, PLAYER)}
        assert by_player["anna"].dealt_thousandths == 334
        assert sum(rake for _, rake in found.values()) == (await wallet.sound()).rake == 4


async def test_hands_that_are_not_sealed_yet_are_said_to_be_missing(start: Start) -> None:
    async with start() as wallet:
        await some_hands(wallet)
        before = datetime.now(UTC)
        request = pb.ReportRakeRequest(by=DAY, currency="EUR")
        page = await wallet.call("ReportRake", request, "audrey", ["auditor"])
        complete = page.complete_until.ToDatetime(tzinfo=UTC)
        assert complete > before.replace(year=before.year - 1)
        await wallet.deposit("anna", 1)
        await wallet.deposit("anna", 1)
        later = await wallet.call("ReportRake", request, "audrey", ["auditor"])
        ((first_unsealed,),) = wallet.sql(
            "SELECT min(at) FROM journal WHERE id > (SELECT max(last_entry) FROM seals)"
        )
        assert later.complete_until.ToDatetime(tzinfo=UTC) == first_unsealed


async def test_an_entry_of_old_without_shares_is_counted_for_its_table(start: Start) -> None:
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        anna, ben = await seats(wallet, outbox, TABLE, "anna", "ben")
        outbox.hand({anna: -10, ben: 9}, rake=1)
        outbox.hand({})
        await wallet.apply(outbox.entries)
        await wallet.upkeep()
        assert [(each.hands, each.rake) for each in await lines(wallet, BY_TABLE)] == [(1, 1)]
        assert await lines(wallet, PLAYER) == []


@pytest.mark.parametrize("inserted_max", [0, 10_000])
async def test_a_stakes_name_is_kept_whatever_it_holds(
    start: Start, monkeypatch: pytest.MonkeyPatch, inserted_max: int
) -> None:
    monkeypatch.setattr(settlement, "INSERTED_MAX", inserted_max)
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        anna, ben = await seats(wallet, outbox, TABLE, "anna", "ben")
        names = ["None", r"\N", "a\tb\nc\rd\\", "höchst €5/€10", "x" * 100, ""]
        for name in names:
            hand(outbox, {anna: 1, ben: 1}, anna, 1, "2026-03-28T22:30:00", stake=name)
        odd = hand(outbox, {anna: 1, ben: 1}, anna, 1, "2026-03-28T22:30:00")
        odd.hand.ended.seconds = 10**15
        assert not (await wallet.apply(outbox.entries)).parked
        await wallet.upkeep()
        found = {each.stake for each in await lines(wallet, STAKE, size=50)}
        assert found == {*names[:4], "x" * 64, "", "5/10"}


async def test_malformed_reports_are_refused(start: Start) -> None:
    async with start() as wallet:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"by": 0}, "BAD_GROUPING"),
            ({"by": 9}, "BAD_GROUPING"),
            ({"currency": ""}, "UNKNOWN_CURRENCY"),
            ({"first_day": "28.3.2026"}, "BAD_DAY"),
            ({"last_day": "2026-02-30"}, "BAD_DAY"),
            ({"first_day": "2026-03-29", "last_day": "2026-03-28"}, "BAD_DAY"),
            ({"table_id": "x"}, "BAD_UUID"),
            ({"player_id": "a b"}, "BAD_PLAYER_ID"),
            ({"page_size": 501}, "BAD_PAGE"),
            ({"page_token": "x"}, "BAD_PAGE"),
            ({"page_token": "." + "x" * 200}, "BAD_PAGE"),
        ]
        for fields, reason in cases:
            request = pb.ReportRakeRequest(**{"by": DAY, "currency": "EUR", **fields})
            call = wallet.call("ReportRake", request, "audrey", ["auditor"])
            await refused(call, InvalidArgument, reason)
        for role in ("player", "service", "cashier"):
            with pytest.raises(PermissionDenied):
                await wallet.call("ReportRake", pb.ReportRakeRequest(), "someone", [role])


async def test_a_schedule_is_found_by_game_and_stake(start: Start) -> None:
    async with start() as wallet:

        async def asked(**fields: Any) -> Any:
            request = pb.GetRakeScheduleRequest(**{"schedule_id": "default", **fields})
            return await wallet.call("GetRakeSchedule", request, *SERVICE)

        found = (await asked(game=game_pb2.GAME_HIGH, small_bet=500)).schedule
        assert (found.basis_points, [cap.cap for cap in found.caps]) == (350, [100, 200, 250])
        assert (found.schedule_id, found.version) == ("default", 1)
        stairs = (await asked(schedule_id="staircase", small_bet=200)).schedule
        assert [step.rake for step in stairs.staircase] == [100, 150, 200, 250, 300]
        request = pb.AssessRakeRequest(
            schedule=stairs, pots=[game_pb2.Pot(amount=4500)], dealt_in=6, street=7
        )
        assert (await wallet.call("AssessRake", request, *SERVICE)).total == 200
        await refused(asked(), NotFound, "STAKE_NOT_COVERED")
        await refused(asked(schedule_id="nobodys"), NotFound, "SCHEDULE_UNKNOWN")
        await refused(asked(version=2, small_bet=100), NotFound, "SCHEDULE_UNKNOWN")
        await refused(asked(version=-1, small_bet=100), NotFound, "SCHEDULE_UNKNOWN")
        await refused(asked(game=7), InvalidArgument, "BAD_GAME")
        await refused(asked(small_bet=-1), InvalidArgument, "BAD_AMOUNT")
