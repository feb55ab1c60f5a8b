"""Which bucket a call takes from, and what a setting may say of them."""

import asyncio
from typing import Any

import pytest

from services.runtime.auth import Caller
from services.runtime.errors import ResourceExhausted, Unavailable
from services.runtime.interceptors import Knock
from services.runtime.origins import site_of
from services.runtime.roles import METHOD_ROLES, Role
from services.table.limits import STANDARD, Limits, counted, kind_of, rates_of
from services.table.store.buckets import Kind, Limit, Rate, Scope

TABLES = "/doorcard.table.v1.TableService/"
TABLE = "5a5c1b0e-9e5f-4f43-8a5e-2f9f3f6a4b10"


class Request:
    """A message with a table."""

    table_id = TABLE


def knock(caller: Caller, method: str = "TakeSeat", **fields: Any) -> Knock:
    """A call."""
    known = {"player": "", "forwarded": "", "peer": "ipv4:203.0.113.7:4000", "request": Request()}
    return Knock(f"{TABLES}{method}", caller, **{**known, **fields})


def caller(role: Role = Role.PLAYER, act_for: tuple[str, ...] = ()) -> Caller:
    """Somebody with one role."""
    return Caller("anna", frozenset({role}), act_for)


class Buckets:
    """Answers as it was told; remembers what was asked."""

    def __init__(self, waits: dict[Limit, int] | None = None, error: Exception | None = None):
        self.waits = waits or {}
        self.error = error
        self.asked: list[tuple[Limit, str]] = []

    async def take(self, limit: Limit, whose: str, _rate: Rate) -> int:
        self.asked.append((limit, whose))
        if self.error is not None:
            raise self.error
        return self.waits.get(limit, 0)


def gate(buckets: Any) -> Limits:
    """A gate on fake buckets."""
    return Limits(buckets, STANDARD)


def test_a_player_counts_for_himself_his_address_and_the_table() -> None:
    assert counted(knock(caller())) == {
        Scope.PLAYER: "anna",
        Scope.ADDRESS: "203.0.113.7",
        Scope.TABLE: TABLE,
    }


def test_a_gateway_counts_for_whom_it_names_and_never_for_itself() -> None:
    gateway = caller(Role.SERVICE, ("eu-",))
    named = counted(knock(gateway, player="eu-ben", forwarded="198.51.100.9"))
    assert named[Scope.PLAYER] == "eu-ben"
    assert named[Scope.ADDRESS] == "198.51.100.9"
    assert set(counted(knock(gateway))) == {Scope.TABLE}


def test_what_a_player_says_of_his_address_is_not_believed() -> None:
    assert counted(knock(caller(), forwarded="198.51.100.9"))[Scope.ADDRESS] == "203.0.113.7"


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.AUDITOR])
def test_staff_are_no_players_but_have_addresses(role: Role) -> None:
    assert set(counted(knock(caller(role)))) == {Scope.ADDRESS, Scope.TABLE}


async def test_a_service_of_the_room_is_never_counted() -> None:
    buckets = Buckets(dict.fromkeys(STANDARD, 1))
    await gate(buckets).admit(knock(caller(Role.SERVICE)))
    assert not buckets.asked


@pytest.mark.parametrize(
    ("peer", "site"),
    [
        ("ipv4:203.0.113.7:4000", "203.0.113.7"),
        ("ipv6:[2001:db8:1:2:3:4:5:6]:4000", "2001:db8:1:2::/64"),
        ("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:4000", "2001:db8:1:2::/64"),
        ("ipv6:[::ffff:203.0.113.7]:4000", "203.0.113.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("ipv4:127.0.0.1:4000", ""),
        ("ipv6:[::1]:4000", ""),
        ("unix:/run/tables.sock", ""),
        ("rubbish", ""),
        ("", ""),
    ],
)
def test_an_address_is_a_host_or_a_network_of_version_6(peer: str, site: str) -> None:
    assert site_of(peer) == site


def test_actions_in_a_hand_are_not_counted_and_all_else_is() -> None:
    assert kind_of(f"{TABLES}Act") is None
    assert kind_of(f"{TABLES}Play") is Kind.STREAMS
    for method in METHOD_ROLES:
        counts = method.startswith((TABLES, "/doorcard.table.v1.TableAdminService/"))
        assert (kind_of(method) is not None) == (counts and not method.endswith("/Act")), method


async def test_a_call_too_many_is_told_which_limit_and_when_to_come_again() -> None:
    limit = (Kind.SEATS, Scope.ADDRESS)
    with pytest.raises(ResourceExhausted) as refused:
        await gate(Buckets({limit: 750})).admit(knock(caller()))
    assert refused.value.reason == "RATE_LIMITED"
    assert refused.value.metadata == {"limit": "seats.address"}
    assert refused.value.retry_after_ms == 750
    assert "203.0.113.7" not in str(refused.value)


async def test_nothing_is_refused_while_redis_is_away_or_slow() -> None:
    await gate(Buckets(error=Unavailable("STORE_AWAY", "away"))).admit(knock(caller()))

    class Slow(Buckets):
        async def take(self, *_: Any) -> int:
            await asyncio.Event().wait()
            return 1

    async with asyncio.timeout(5):
        await gate(Slow()).admit(knock(caller()))


def test_a_setting_changes_some_limits_and_leaves_the_others() -> None:
    rates = rates_of("seats.player=0.5/10, lobby.address=off")
    assert rates[Kind.SEATS, Scope.PLAYER] == Rate(0.5, 10)
    assert (Kind.LOBBY, Scope.ADDRESS) not in rates
    assert rates[Kind.CALLS, Scope.PLAYER] == STANDARD[Kind.CALLS, Scope.PLAYER]
    assert rates_of("") == STANDARD


@pytest.mark.parametrize(
    "text", ["seats", "seats.player", "mails.player=1/1", "seats.player=0/1", "calls.table=1/x"]
)
def test_a_setting_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no limit|is not like|more than 0"):
        rates_of(text)
