"""The pots of several hands in one message: each is divided as if it had come by itself."""

from typing import Any

import pytest
from doorcard.showdown.v1 import showdown_pb2 as pb

from services.runtime.batches import CALLS_MAX
from services.runtime.errors import DoorcardError, InvalidArgument, PermissionDenied
from tests.conftest import Room
from tests.contract.showdown.showdowns import answered, showdown_of
from tests.contract.showdown.test_showdown_contract import division


def batch(*requests: pb.DivideShowdownRequest) -> pb.BatchDivideShowdownRequest:
    return pb.BatchDivideShowdownRequest(
        calls=[pb.DivideShowdownCall(divide_showdown=each) for each in requests]
    )


async def test_hands_are_divided_in_order_and_a_bad_one_touches_no_other(room: Room) -> None:
    async with showdown_of(room) as showdown:
        bad = division(button=9)
        answer = await answered(
            showdown.BatchDivideShowdown, batch(division(), bad, division(amount=40))
        )
        first, refused, last = answer.answers
        assert first.divide_showdown == await answered(showdown.DivideShowdown, division())
        assert sum(award.amount for award in last.divide_showdown.awards) == 40
        with pytest.raises(InvalidArgument) as alone:
            await answered(showdown.DivideShowdown, bad)
        error = DoorcardError.from_wire(refused.error)
        assert type(error) is InvalidArgument
        assert (error.reason, error.violations) == (alone.value.reason, alone.value.violations)


@pytest.mark.parametrize("count", [0, CALLS_MAX + 1])
async def test_none_or_too_many_hands_are_refused_by_the_fields_name(
    room: Room, count: int
) -> None:
    async with showdown_of(room) as showdown:
        with pytest.raises(InvalidArgument) as refused:
            await answered(showdown.BatchDivideShowdown, batch(*[division()] * count))
        assert [field for field, _ in refused.value.violations] == ["calls"]


@pytest.mark.parametrize("roles", [("player",), ("operator",), ("auditor",)])
async def test_only_services_may_send_them(room: Room, roles: Any) -> None:
    async with showdown_of(room, roles) as showdown:
        with pytest.raises(PermissionDenied):
            await answered(showdown.BatchDivideShowdown, batch(division()))
