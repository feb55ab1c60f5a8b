"""Buy-ins: set aside, committed or released by the outbox, never twice, never below zero."""

import asyncio
from contextlib import suppress
from uuid import uuid4

import pytest
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.errors import (
    AlreadyExists,
    DoorcardError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    Unavailable,
)
from tests.contract.wallet.conftest import OTHER_TABLE, SERVICE, Outbox, Start


async def test_a_buy_in_is_pending_then_in_play_then_back(start: Start) -> None:
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        await wallet.deposit("anna", 500)
        reservation = await wallet.reserve("anna", 200, "sitting-1")
        assert reservation.state == pb.RESERVATION_STATE_PENDING
        assert await wallet.balance("anna") == (300, 200, 0)
        await wallet.apply([outbox.commit(reservation.reservation_id)])
        assert await wallet.balance("anna") == (300, 0, 200)
        assert await wallet.escrow() == {"sitting-1": 200}
        answer = await wallet.apply([outbox.cash_out("sitting-1", "anna", 200)])
        assert not answer.parked
        assert await wallet.balance("anna") == (500, 0, 0)
        await wallet.sound()


async def test_of_100_buy_ins_of_80_at_once_from_100_exactly_one_succeeds(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 100)

        async def buy_in(sitting: str, reservation: str) -> pb.Reservation:
            """As clients do: on a busy machine the same request again."""
            for _ in range(10):
                with suppress(Unavailable):
                    return await wallet.reserve("anna", 80, sitting, reservation)
            raise AssertionError("the wallet stayed away")

        answers = await asyncio.gather(
            *(buy_in(f"sitting-{number}", str(uuid4())) for number in range(100)),
            return_exceptions=True,
        )
        assert not any(isinstance(each, AssertionError) for each in answers)
        refused = [each for each in answers if isinstance(each, DoorcardError)]
        assert len(refused) == 99
        assert {each.reason for each in refused} == {"INSUFFICIENT_FUNDS"}
        assert await wallet.balance("anna") == (20, 80, 0)
        found = await wallet.sound()
        assert (found.players, found.escrow) == (20, 80)


async def test_the_same_buy_in_100_times_at_once_sets_aside_once(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 100)
        one = str(uuid4())
        answers = await asyncio.gather(
            *(wallet.reserve("anna", 80, "sitting-1", one) for _ in range(100))
        )
        assert all(each == answers[0] for each in answers)
        assert await wallet.balance("anna") == (20, 80, 0)


async def test_a_repeat_answers_the_state_it_is_in_now(start: Start) -> None:
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        await wallet.deposit("anna", 100)
        kept, given_back = str(uuid4()), str(uuid4())
        await wallet.reserve("anna", 40, "sitting-1", kept)
        await wallet.reserve("anna", 40, "sitting-2", given_back)
        await wallet.apply([outbox.commit(kept), outbox.release(given_back)])
        committed = await wallet.reserve("anna", 40, "sitting-1", kept)
        released = await wallet.reserve("anna", 40, "sitting-2", given_back)
        assert committed.state == pb.RESERVATION_STATE_COMMITTED
        assert released.state == pb.RESERVATION_STATE_RELEASED
        assert await wallet.balance("anna") == (60, 0, 40)


@pytest.mark.parametrize(
    "other",
    [
        {"amount": 41},
        {"sitting": "sitting-2"},
        {"player": "ben"},
        {"table_id": OTHER_TABLE},
        {"currency": "USD"},
    ],
)
async def test_the_same_id_with_other_content_is_refused(
    start: Start, other: dict[str, object]
) -> None:
    async with start() as wallet:
        for player in ("anna", "ben"):
            for currency in ("EUR", "USD"):
                await wallet.deposit(player, 100, currency)
        asked = {
            "player": "anna",
            "amount": 40,
            "sitting": "sitting-1",
            "reservation": str(uuid4()),
        }
        await wallet.reserve(**asked)  # type: ignore[arg-type]
        with pytest.raises(AlreadyExists) as caught:
            await wallet.reserve(**{**asked, **other})  # type: ignore[arg-type]
        assert caught.value.reason == "ID_REUSED"
        assert await wallet.balance("anna") == (60, 40, 0)


async def test_lack_of_funds_is_not_remembered(start: Start) -> None:
    async with start() as wallet:
        one = str(uuid4())
        for have in (0, 50):
            with pytest.raises(FailedPrecondition) as caught:
                await wallet.reserve("anna", 80, "sitting-1", one)
            assert caught.value.reason == "INSUFFICIENT_FUNDS"
            assert caught.value.metadata == {"available": str(have)}
            await wallet.deposit("anna", 50)
        assert (await wallet.reserve("anna", 80, "sitting-1", one)).amount == 80


async def test_a_refused_id_stays_refused(start: Start) -> None:
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        await wallet.deposit("anna", 100)
        await wallet.deposit("ben", 100)
        taken, mine = str(uuid4()), await wallet.reserve("anna", 40, "sitting-1")
        for _ in range(2):
            with pytest.raises(FailedPrecondition) as caught:
                await wallet.reserve("ben", 40, "sitting-1", taken)
            assert caught.value.reason == "SITTING_TAKEN"
        with pytest.raises(AlreadyExists):
            await wallet.reserve("ben", 40, "sitting-2", taken)
        await wallet.apply(
            [outbox.commit(mine.reservation_id), outbox.cash_out("sitting-1", "anna", 40)]
        )
        for _ in range(2):
            with pytest.raises(FailedPrecondition) as caught:
                await wallet.reserve(
                    "anna", 40, "sitting-1", "00000000-0000-4000-8000-000000000001"
                )
            assert caught.value.reason == "SITTING_ENDED"
        assert await wallet.balance("ben") == (100, 0, 0)


async def test_a_closed_account_takes_part_in_nothing(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 100)
        wallet.sql("UPDATE accounts SET closed = true WHERE owner = 'anna'")
        for refused in (
            wallet.deposit("anna", 1),
            wallet.withdraw("anna", 1),
            wallet.reserve("anna", 1, "sitting-1"),
        ):
            with pytest.raises(FailedPrecondition) as caught:
                await refused
            assert caught.value.reason == "ACCOUNT_CLOSED"


async def test_a_release_that_overtakes_its_reserve_shuts_the_door(start: Start) -> None:
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        await wallet.deposit("anna", 100)
        late = str(uuid4())
        assert not (await wallet.apply([outbox.release(late)])).parked
        reservation = await wallet.reserve("anna", 80, "sitting-1", late)
        assert reservation.state == pb.RESERVATION_STATE_RELEASED
        assert reservation.amount == 80
        assert await wallet.balance("anna") == (100, 0, 0)


async def test_a_release_and_its_reserve_at_once_end_in_a_release(start: Start) -> None:
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        await wallet.deposit("anna", 100)
        for number in range(20):
            one = str(uuid4())
            await asyncio.gather(
                wallet.apply([outbox.release(one)]),
                wallet.reserve("anna", 80, f"sitting-{number}", one),
            )
            assert (await wallet.reservation(one)).state == pb.RESERVATION_STATE_RELEASED
        assert await wallet.balance("anna") == (100, 0, 0)
        await wallet.sound()


async def test_release_of_a_committed_one_does_nothing(start: Start) -> None:
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        await wallet.deposit("anna", 100)
        one = (await wallet.reserve("anna", 80, "sitting-1")).reservation_id
        answer = await wallet.apply([outbox.commit(one), outbox.release(one), outbox.commit(one)])
        assert not answer.parked
        assert await wallet.balance("anna") == (20, 0, 80)


async def test_commit_of_a_released_one_is_parked(start: Start) -> None:
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        await wallet.deposit("anna", 100)
        one = (await wallet.reserve("anna", 80, "sitting-1")).reservation_id
        answer = await wallet.apply([outbox.release(one), outbox.commit(one)])
        assert [each.reason for each in answer.parked] == ["RESERVATION_RELEASED"]
        assert await wallet.balance("anna") == (100, 0, 0)


async def test_a_top_up_adds_to_the_same_sitting(start: Start) -> None:
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        await wallet.deposit("anna", 100)
        for amount in (40, 25):
            one = await wallet.reserve("anna", amount, "sitting-1")
            await wallet.apply([outbox.commit(one.reservation_id)])
        assert await wallet.escrow() == {"sitting-1": 65}


async def test_currencies_never_mix(start: Start) -> None:
    async with start() as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        await wallet.deposit("anna", 100, "EUR")
        await wallet.deposit("anna", 70, "XTS")
        euro = await wallet.reserve("anna", 40, "sitting-1")
        play = await wallet.reserve("anna", 40, "sitting-2", table_id=OTHER_TABLE, currency="XTS")
        answer = await wallet.apply(
            [
                outbox.commit(euro.reservation_id, currency="XTS"),
                outbox.commit(play.reservation_id, table=OTHER_TABLE, currency="XTS"),
            ]
        )
        assert [each.reason for each in answer.parked] == ["CURRENCY_DIFFERS"]
        assert await wallet.balance("anna", "XTS") == (30, 0, 40)
        assert (await wallet.sound("EUR")).escrow == 40
        assert (await wallet.sound("XTS")).escrow == 40


async def test_a_table_has_the_currency_of_its_first_money(start: Start) -> None:
    async with start() as wallet:
        for currency in ("EUR", "XTS"):
            await wallet.deposit("anna", 100, currency)
            await wallet.deposit("ben", 100, currency)
        await wallet.reserve("anna", 10, "sitting-1")
        for _ in range(2):
            with pytest.raises(FailedPrecondition) as caught:
                await wallet.reserve(
                    "ben", 10, "sitting-2", "5f0c2d6e-6d3c-4b53-9a52-00000000c0de", currency="XTS"
                )
            assert caught.value.reason == "TABLE_CURRENCY"
        await wallet.reserve("ben", 10, "sitting-3", table_id=OTHER_TABLE, currency="XTS")
        assert await wallet.balance("ben", "XTS") == (90, 10, 0)
        await wallet.sound()
        await wallet.sound("XTS")


async def test_pending_reservations_are_listed_oldest_first_in_pages(start: Start) -> None:
    async with start() as wallet:
        await wallet.deposit("anna", 100)
        made = [
            (await wallet.reserve("anna", 10, f"sitting-{number}")).reservation_id
            for number in range(5)
        ]
        found: list[str] = []
        token = ""
        while True:
            request = pb.ListReservationsRequest(page_size=2, page_token=token)
            page = await wallet.call("ListReservations", request, *SERVICE)
            found += [each.reservation_id for each in page.reservations]
            token = page.next_page_token
            if not token:
                break
        assert found == made
        middle = await wallet.reservation(made[2])
        older = pb.ListReservationsRequest(created_before=middle.created)
        page = await wallet.call("ListReservations", older, *SERVICE)
        assert [each.reservation_id for each in page.reservations] == made[:2]
        young = pb.ListReservationsRequest()
        young.older_than.seconds = 60
        assert not (await wallet.call("ListReservations", young, *SERVICE)).reservations
        young.older_than.seconds, young.older_than.nanos = 0, 1000
        page = await wallet.call("ListReservations", young, *SERVICE)
        assert [each.reservation_id for each in page.reservations] == made
        young.older_than.seconds = 10**15
        with pytest.raises(InvalidArgument):
            await wallet.call("ListReservations", young, *SERVICE)


async def test_an_unknown_reservation_is_not_found(start: Start) -> None:
    async with start() as wallet:
        with pytest.raises(NotFound) as caught:
            await wallet.reservation(str(uuid4()))
        assert caught.value.reason == "RESERVATION_UNKNOWN"
