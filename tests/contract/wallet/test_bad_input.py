"""Bad input, case by case: a typed error, and no row of money written."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.errors import (
    AlreadyExists,
    DoorcardError,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
)
from tests.contract.wallet.conftest import (
    FAR_TABLE,
    OTHER_TABLE,
    SERVICE,
    Outbox,
    Start,
    Wallet,
    two_seats,
)

MONEY = ("accounts", "journal", "transfers", "hands", "reservations", "progress", "parked")
"""Everything but `requests`, which remembers what was refused."""


class Scene:
    """anna and ben sit with 100 each; carl has 100; dora's account is closed."""

    def __init__(self, wallet: Wallet, outbox: Outbox, anna: str, ben: str) -> None:
        self.wallet, self.outbox, self.anna, self.ben = wallet, outbox, anna, ben

    @classmethod
    async def made(cls, wallet: Wallet) -> "Scene":
        scene = cls(wallet, *await two_seats(wallet))
        await wallet.deposit("carl", 100, request_id="carls")
        await wallet.deposit("dora", 1)
        await wallet.withdraw("dora", 1)
        await wallet.close("dora")
        return scene

    def rows(self) -> dict[str, list[Any]]:
        """All rows of money there are."""
        return {table: self.wallet.sql(f"SELECT * FROM {table} ORDER BY 1, 2") for table in MONEY}

    def reserve(self, **fields: Any) -> Awaitable[Any]:
        asked = {"player": "carl", "amount": 10, "sitting": "carl-1", **fields}
        return self.wallet.reserve(**asked)

    def deposit(self, **fields: Any) -> Awaitable[Any]:
        return self.wallet.deposit(**{"player": "carl", "amount": 10, **fields})

    def withdraw(self, **fields: Any) -> Awaitable[Any]:
        return self.wallet.withdraw(**{"player": "carl", "amount": 10, **fields})

    def adjust(self, **fields: Any) -> Awaitable[Any]:
        return self.wallet.adjust(**{"player_id": "carl", "amount": 10, **fields})

    def out_of_order(self, how: Callable[[list[pb.LedgerEntry]], None]) -> Awaitable[Any]:
        entries = [self.outbox.hand({self.anna: -1, self.ben: 1}) for _ in range(3)]
        how(entries)
        return self.wallet.apply(entries)


Call = Callable[[Scene], Awaitable[Any]]
Case = tuple[Call, type[DoorcardError], str]
NOBODY = str(uuid4())

CASES: dict[str, Case] = {
    "deposit of zero": (lambda s: s.deposit(amount=0), InvalidArgument, "BAD_AMOUNT"),
    "deposit of less": (lambda s: s.deposit(amount=-1), InvalidArgument, "BAD_AMOUNT"),
    "deposit of too much": (lambda s: s.deposit(amount=2**53), InvalidArgument, "BAD_AMOUNT"),
    "deposit beyond 64 bits' half": (
        lambda s: s.deposit(amount=2**63 - 1),
        InvalidArgument,
        "BAD_AMOUNT",
    ),
    "withdrawal of zero": (lambda s: s.withdraw(amount=0), InvalidArgument, "BAD_AMOUNT"),
    "withdrawal of less": (lambda s: s.withdraw(amount=-1), InvalidArgument, "BAD_AMOUNT"),
    "withdrawal of too much": (lambda s: s.withdraw(amount=2**53), InvalidArgument, "BAD_AMOUNT"),
    "buy-in of zero": (lambda s: s.reserve(amount=0), InvalidArgument, "BAD_AMOUNT"),
    "buy-in of less": (lambda s: s.reserve(amount=-1), InvalidArgument, "BAD_AMOUNT"),
    "buy-in of too much": (lambda s: s.reserve(amount=2**53), InvalidArgument, "BAD_AMOUNT"),
    "adjustment of zero": (lambda s: s.adjust(amount=0), InvalidArgument, "BAD_AMOUNT"),
    "adjustment of too much": (lambda s: s.adjust(amount=-(2**53)), InvalidArgument, "BAD_AMOUNT"),
    "deposit of no currency": (
        lambda s: s.deposit(currency="EURO"),
        InvalidArgument,
        "UNKNOWN_CURRENCY",
    ),
    "buy-in of no currency": (
        lambda s: s.reserve(currency="XXX"),
        InvalidArgument,
        "UNKNOWN_CURRENCY",
    ),
    "buy-in in a currency that he has not": (
        lambda s: s.reserve(currency="USD", table_id=FAR_TABLE),
        FailedPrecondition,
        "INSUFFICIENT_FUNDS",
    ),
    "buy-in for an escrow of another currency": (
        lambda s: s.reserve(player="anna", sitting=s.anna, currency="USD"),
        FailedPrecondition,
        "INSUFFICIENT_FUNDS",
    ),
    "adjustment of a sitting in another currency": (
        lambda s: s.wallet.adjust(1, sitting_id=s.anna, currency="USD"),
        FailedPrecondition,
        "CURRENCY_DIFFERS",
    ),
    "withdrawal from an unknown account": (
        lambda s: s.withdraw(player="nobody"),
        FailedPrecondition,
        "INSUFFICIENT_FUNDS",
    ),
    "buy-in from an unknown account": (
        lambda s: s.reserve(player="nobody"),
        FailedPrecondition,
        "INSUFFICIENT_FUNDS",
    ),
    "adjustment of an unknown sitting": (
        lambda s: s.wallet.adjust(1, sitting_id="nobody"),
        NotFound,
        "SITTING_UNKNOWN",
    ),
    "closing of an unknown account": (
        lambda s: s.wallet.close("nobody"),
        NotFound,
        "ACCOUNT_UNKNOWN",
    ),
    "look-up of an unknown transfer": (
        lambda s: s.wallet.transfer("999999"),
        NotFound,
        "TRANSFER_UNKNOWN",
    ),
    "look-up of an unknown reservation": (
        lambda s: s.wallet.reservation(NOBODY),
        NotFound,
        "RESERVATION_UNKNOWN",
    ),
    "deposit to a closed account": (
        lambda s: s.deposit(player="dora"),
        FailedPrecondition,
        "ACCOUNT_CLOSED",
    ),
    "withdrawal from a closed account": (
        lambda s: s.withdraw(player="dora"),
        FailedPrecondition,
        "ACCOUNT_CLOSED",
    ),
    "buy-in from a closed account": (
        lambda s: s.reserve(player="dora"),
        FailedPrecondition,
        "ACCOUNT_CLOSED",
    ),
    "adjustment of a closed account": (
        lambda s: s.adjust(player_id="dora"),
        FailedPrecondition,
        "ACCOUNT_CLOSED",
    ),
    "one id for other content": (
        lambda s: s.deposit(request_id="carls", amount=101),
        AlreadyExists,
        "ID_REUSED",
    ),
    "somebody else's sitting": (
        lambda s: s.reserve(sitting=s.anna),
        FailedPrecondition,
        "SITTING_TAKEN",
    ),
    "a sitting at another table": (
        lambda s: s.reserve(sitting=s.anna, table_id=OTHER_TABLE),
        FailedPrecondition,
        "SITTING_TAKEN",
    ),
    "a batch turned round": (
        lambda s: s.out_of_order(list.reverse),
        InvalidArgument,
        "BAD_BATCH",
    ),
    "a batch with a gap": (
        lambda s: s.out_of_order(lambda entries: entries.pop(1) and None),
        InvalidArgument,
        "BAD_BATCH",
    ),
    "a batch that begins too late": (
        lambda s: s.out_of_order(lambda entries: entries.pop(0) and None),
        FailedPrecondition,
        "SEQ_GAP",
    ),
    "a batch of another chain": (
        lambda s: s.out_of_order(lambda entries: setattr(entries[0], "previous_entry_id", NOBODY)),
        FailedPrecondition,
        "LINK_BROKEN",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_bad_input_is_a_typed_error_and_writes_no_money(start: Start, case: str) -> None:
    call, kind, reason = CASES[case]
    async with start() as wallet:
        scene = await Scene.made(wallet)
        before = scene.rows()
        with pytest.raises(kind) as caught:
            await call(scene)
        assert type(caught.value) is kind
        assert caught.value.reason == reason
        assert scene.rows() == before
        await wallet.sound()


@pytest.mark.parametrize("released", [True, False])
async def test_a_resolved_reservation_is_neither_made_nor_moved_again(
    start: Start, released: bool
) -> None:
    async with start() as wallet:
        scene = await Scene.made(wallet)
        reservation = str(uuid4())
        await wallet.reserve("carl", 10, "carl-1", reservation)
        resolve = scene.outbox.release if released else scene.outbox.commit
        await wallet.apply([resolve(reservation)])
        before = scene.rows()
        again = await wallet.reserve("carl", 10, "carl-1", reservation)
        assert again.state == (
            pb.RESERVATION_STATE_RELEASED if released else pb.RESERVATION_STATE_COMMITTED
        )
        assert {**scene.rows(), "progress": []} == {**before, "progress": []}
        # What the table may say of it again moves nothing; the contrary of a release is parked.
        answer = await wallet.apply([resolve(reservation)])
        assert not answer.parked
        other = scene.outbox.commit if released else scene.outbox.release
        answer = await wallet.apply([other(reservation)])
        assert [each.reason for each in answer.parked] == (
            ["RESERVATION_RELEASED"] if released else []
        )
        after = scene.rows()
        for table in ("accounts", "journal", "transfers", "reservations"):
            assert after[table] == before[table]


async def test_a_sum_that_is_not_zero_is_parked_and_moves_nothing(start: Start) -> None:
    async with start() as wallet:
        scene = await Scene.made(wallet)
        before = scene.rows()
        for nets, rake in (
            ({scene.anna: -10, scene.ben: 10}, 1),
            ({scene.anna: -10, scene.ben: 9}, 0),
            ({scene.anna: 1}, 0),
            ({}, 1),
        ):
            scene.outbox.hand(nets, rake)
        answer = await wallet.apply(scene.outbox.entries)
        assert answer.parked[0].reason == "SUM_NOT_ZERO"
        assert len(answer.parked) == 4
        after = scene.rows()
        for table in ("journal", "transfers", "hands", "reservations"):
            assert after[table] == before[table]
        assert await wallet.escrow() == {scene.anna: 100, scene.ben: 100}


async def test_rubbish_in_every_field_is_refused_before_the_ledger_is_asked(start: Start) -> None:
    async with start() as wallet:
        before = wallet.sql("SELECT count(*) FROM requests")
        for field, value, reason in (
            ("reservation_id", "x", "BAD_UUID"),
            ("reservation_id", "", "BAD_UUID"),
            ("player_id", "", "BAD_PLAYER_ID"),
            ("player_id", "a\0", "BAD_PLAYER_ID"),
            ("table_id", "table", "BAD_UUID"),
            ("sitting_id", "s" * 65, "BAD_REQUEST_ID"),
        ):
            fields: dict[str, Any] = {
                "reservation_id": NOBODY,
                "player_id": "carl",
                "table_id": OTHER_TABLE,
                "sitting_id": "carl-1",
                "amount": 1,
                "currency": "EUR",
                field: value,
            }
            with pytest.raises(InvalidArgument) as caught:
                await wallet.call("ReserveBuyIn", pb.ReserveBuyInRequest(**fields), *SERVICE)
            assert caught.value.reason == reason
            assert [each[0] for each in caught.value.violations] == [field]
        assert wallet.sql("SELECT count(*) FROM requests") == before
