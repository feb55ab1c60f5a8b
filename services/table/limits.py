"""Limits of how often a player, an address or a table may be asked for something: token buckets in
Redis, so that all replicas count together.

Actions in a hand are not counted here: a table's mailbox bounds them, and they cost one round trip
to Redis, no more; those that are refused are counted where they come in (`streams.budgets`). While
Redis is away nothing is refused: then nothing can be committed either, and a limit must not be what
keeps a player from his own table when it is back. An address is kept only as a keyed hash in the
name of its bucket.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from prometheus_client import Counter

from services.runtime.auth import Caller
from services.runtime.errors import DoorcardError, ResourceExhausted
from services.runtime.ids import check_uuid
from services.runtime.interceptors import Knock
from services.runtime.metrics import REGISTRY
from services.runtime.origins import origin_of
from services.runtime.roles import Role
from services.table.store.buckets import Buckets, Kind, Limit, Rate, Scope

ASK_TIMEOUT_S: Final = 0.25
PER_SECOND_MAX: Final = 1_000_000
BURST_MAX: Final = 10_000_000

LIMITED: Final = Counter(
    "doorcard_rate_limited", "Calls refused by a rate limit.", ["limit"], registry=REGISTRY
)
UNCHECKED: Final = Counter(
    "doorcard_rate_limits_unchecked",
    "Calls let through uncounted because Redis did not answer.",
    registry=REGISTRY,
)


Rates = Mapping[Limit, Rate]

STANDARD: Final[Rates] = {
    (Kind.SEATS, Scope.PLAYER): Rate(2, 60),
    (Kind.SEATS, Scope.ADDRESS): Rate(50, 1000),
    (Kind.SEATS, Scope.TABLE): Rate(50, 500),
    (Kind.STREAMS, Scope.PLAYER): Rate(5, 300),
    (Kind.STREAMS, Scope.ADDRESS): Rate(200, 5000),
    (Kind.STREAMS, Scope.TABLE): Rate(200, 5000),
    (Kind.LOBBY, Scope.PLAYER): Rate(20, 400),
    (Kind.LOBBY, Scope.ADDRESS): Rate(400, 8000),
    (Kind.CALLS, Scope.PLAYER): Rate(50, 1000),
    (Kind.CALLS, Scope.ADDRESS): Rate(1000, 20_000),
    (Kind.CALLS, Scope.TABLE): Rate(200, 4000),
}

_PLAYERS: Final = "/doorcard.table.v1.TableService/"
_OPERATORS: Final = "/doorcard.table.v1.TableAdminService/"
_UNCOUNTED: Final = frozenset({"Act"})
_KINDS: Final = {
    "TakeSeat": Kind.SEATS,
    "TopUp": Kind.SEATS,
    "JoinWaitingList": Kind.SEATS,
    "ChangeTable": Kind.SEATS,
    "Play": Kind.STREAMS,
    "WatchTable": Kind.STREAMS,
    "WatchLobby": Kind.STREAMS,
    "WatchRouting": Kind.STREAMS,
    "ListTables": Kind.LOBBY,
    "ListSeats": Kind.LOBBY,
    "FindSeat": Kind.LOBBY,
    "GetTable": Kind.LOBBY,
}


class Limits:
    """The gate before the methods of the table service."""

    def __init__(self, buckets: Buckets, rates: Rates) -> None:
        self._buckets = buckets
        self._rates = rates

    async def admit(self, knock: Knock) -> None:
        """Raises ResourceExhausted (RATE_LIMITED; metadata `limit`: which one) for a call too many.

        Every bucket that the call concerns gives a token, also where another has none.
        """
        kind = kind_of(knock.method)
        if kind is None or _is_the_room(knock.caller):
            return
        asked = [
            ((kind, scope), whose, self._rates[kind, scope])
            for scope, whose in counted(knock).items()
            if (kind, scope) in self._rates
        ]
        if not asked:
            return
        try:
            async with asyncio.timeout(ASK_TIMEOUT_S):
                waits = await asyncio.gather(*(self._buckets.take(*each) for each in asked))
        except (DoorcardError, TimeoutError):
            UNCHECKED.inc()
            return
        for (limit, _, _), wait_ms in zip(asked, waits, strict=True):
            if wait_ms:
                raise limited(f"{limit[0]}.{limit[1]}", wait_ms)


def counted(knock: Knock) -> dict[Scope, str]:
    """Whom a call counts for.

    Operators and auditors are no players. A gateway counts for the player that it names, and for
    the address that it says he has; its own address is nobody's.
    """
    caller = knock.caller
    gateway = Role.SERVICE in caller.roles
    found: dict[Scope, str] = {}
    if gateway and knock.player:
        found[Scope.PLAYER] = knock.player
    elif Role.PLAYER in caller.roles:
        found[Scope.PLAYER] = caller.subject
    address = origin_of(knock)
    if address:
        found[Scope.ADDRESS] = address
    table_id = getattr(knock.request, "table_id", "")
    if table_id:
        found[Scope.TABLE] = check_uuid(table_id, "table_id")
    return found


def kind_of(method: str) -> Kind | None:
    """What a method of the contract counts as; None for nothing."""
    service, _, name = method.rpartition("/")
    if f"{service}/" == _OPERATORS:
        return Kind.CALLS
    if f"{service}/" != _PLAYERS or name in _UNCOUNTED:
        return None
    return _KINDS.get(name, Kind.CALLS)


def rates_of(text: str) -> Rates:
    """The standard rates with what a setting says otherwise, as tokens a second and tokens of a
    full bucket: "seats.player=2/60, lobby.address=off". Raises ValueError.
    """
    rates = dict(STANDARD)
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, _, value = part.partition("=")
        kind, _, scope = name.strip().partition(".")
        try:
            limit = (Kind(kind), Scope(scope))
        except ValueError:
            raise ValueError(f"{name.strip()!r} is no limit") from None
        if value.strip() == "off":
            rates.pop(limit, None)
        else:
            rates[limit] = _rate_of(value)
    return rates


def _rate_of(value: str) -> Rate:
    per_second, _, burst = value.partition("/")
    try:
        rate = Rate(float(per_second), int(burst))
    except ValueError:
        raise ValueError(f"{value.strip()!r} is not like 2/60, or off") from None
    if not (0 < rate.per_second <= PER_SECOND_MAX and 1 <= rate.burst <= BURST_MAX):
        raise ValueError(f"{value.strip()!r}: more than 0 a second, and 1 or more at once")
    return rate


def _is_the_room(caller: Caller) -> bool:
    """A service of the room that stands for no players."""
    return Role.SERVICE in caller.roles and not caller.act_for


def limited(name: str, wait_ms: int) -> ResourceExhausted:
    """The refusal of what is over a limit, which is counted."""
    LIMITED.labels(name).inc()
    return ResourceExhausted(
        "RATE_LIMITED",
        f"too much at once: {name}",
        metadata={"limit": name},
        retry_after_ms=wait_ms,
    )
