"""The rake of several hands in one message: each as if it had come by itself, database or not."""

from typing import Any

import pytest
from doorcard.game.v1 import game_pb2
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.batches import CALLS_MAX
from services.runtime.errors import DoorcardError, InvalidArgument, PermissionDenied
from tests.contract.wallet.conftest import SERVICE, Start, Wallet
from tests.contract.wallet.test_without_its_database import NOWHERE

SCHEDULE = pb.RakeSchedule(schedule_id="x", version=1, basis_points=500)


def call(*pots: int, dealt_in: int = 2) -> pb.AssessRakeCall:
    return pb.AssessRakeCall(
        assess_rake=pb.AssessRakeRequest(
            schedule=SCHEDULE,
            pots=[game_pb2.Pot(amount=amount) for amount in pots],
            dealt_in=dealt_in,
            street=7,
        )
    )


async def sent(wallet: Wallet, calls: list[pb.AssessRakeCall], who: Any = SERVICE) -> Any:
    request = pb.BatchAssessRakeRequest(calls=calls)
    return (await wallet.call("BatchAssessRake", request, *who)).answers


async def test_hands_are_raked_in_order_and_a_bad_one_touches_no_other(start: Start) -> None:
    async with start(NOWHERE, opens=False) as wallet:
        answers = await sent(wallet, [call(400, 600), call(100, dealt_in=1), call(80)])
        assert list(answers[0].assess_rake.shares) == [20, 30]
        assert answers[2].assess_rake.total == 4
        error = DoorcardError.from_wire(answers[1].error)
        assert type(error) is InvalidArgument
        assert (error.reason, error.violations[0][0]) == ("BAD_HAND", "dealt_in")


@pytest.mark.parametrize("count", [0, CALLS_MAX + 1])
async def test_none_or_too_many_hands_are_refused_by_the_fields_name(
    start: Start, count: int
) -> None:
    async with start(NOWHERE, opens=False) as wallet:
        with pytest.raises(InvalidArgument) as refused:
            await sent(wallet, [call(100)] * count)
        assert [field for field, _ in refused.value.violations] == ["calls"]


@pytest.mark.parametrize("role", ["player", "operator", "auditor", "cashier"])
async def test_only_services_may_send_them(start: Start, role: str) -> None:
    async with start(NOWHERE, opens=False) as wallet:
        with pytest.raises(PermissionDenied):
            await sent(wallet, [call(100)], ("someone", (role,)))
