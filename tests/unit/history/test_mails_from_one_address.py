"""How many mails may be asked for from one address."""

import pytest

from services.history.mail_limit import ADDRESSES_MAX, METHOD, MailLimit
from services.runtime.auth import Caller
from services.runtime.errors import ResourceExhausted
from services.runtime.interceptors import Knock
from services.runtime.roles import Role

ANNA = Caller("anna", frozenset({Role.PLAYER}))
GATEWAY = Caller("gate", frozenset({Role.SERVICE}), ("eu-",))


def knock(peer: str, caller: Caller = ANNA, method: str = METHOD, forwarded: str = "") -> Knock:
    return Knock(method, caller, "", forwarded, peer, None)


async def test_an_address_has_so_many_in_an_hour_and_then_one_at_a_time() -> None:
    now_s = [1000.0]
    limit = MailLimit(3, lambda: now_s[0])
    here = knock("ipv4:203.0.113.7:1")
    for _ in range(3):
        await limit.admit(here)
    with pytest.raises(ResourceExhausted) as refused:
        await limit.admit(here)
    assert refused.value.reason == "RATE_LIMITED"
    assert refused.value.metadata == {"limit": "mails.address"}
    assert refused.value.retry_after_ms is not None
    assert 1_199_000 <= refused.value.retry_after_ms <= 1_200_100
    await limit.admit(knock("ipv4:203.0.113.8:1"))
    now_s[0] += 1200
    await limit.admit(here)
    with pytest.raises(ResourceExhausted):
        await limit.admit(here)


async def test_a_gateway_is_counted_by_the_address_that_it_gives() -> None:
    limit = MailLimit(1)
    own = "ipv4:198.51.100.1:1"
    for _ in range(3):
        await limit.admit(knock(own, GATEWAY))
    await limit.admit(knock(own, GATEWAY, forwarded="203.0.113.7"))
    with pytest.raises(ResourceExhausted):
        await limit.admit(knock(own, GATEWAY, forwarded="203.0.113.7"))


async def test_other_calls_and_this_machine_are_not_counted() -> None:
    limit = MailLimit(1)
    for _ in range(3):
        await limit.admit(knock("ipv4:203.0.113.7:1", method=METHOD.replace("Request", "Claim")))
        await limit.admit(knock("ipv4:127.0.0.1:1"))


async def test_no_more_addresses_are_kept_than_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ADDRESSES_MAX > 1000
    monkeypatch.setattr("services.history.mail_limit.ADDRESSES_MAX", 2)
    limit = MailLimit(1)
    for last in (1, 2, 3):
        await limit.admit(knock(f"ipv4:203.0.113.{last}:1"))
    await limit.admit(knock("ipv4:203.0.113.1:1"))
    with pytest.raises(ResourceExhausted):
        await limit.admit(knock("ipv4:203.0.113.3:1"))
