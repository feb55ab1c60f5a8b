"""What a CreateTable request says, checked whole: every fault is reported at once."""

import hashlib
import re
from dataclasses import astuple
from typing import Final, NamedTuple

from doorcard.table.v1 import table_pb2

from services.game.rulebook import (
    UNITS_MAX,
    RakeOnThird,
    Rulebook,
    RulebookError,
    Stake,
    check_stake,
    parse_rulebook,
    shipped,
    shipped_names,
)
from services.game.setup import SEATS_MAX
from services.runtime.clock import MS_PER_S
from services.runtime.errors import InvalidArgument
from services.runtime.ids import check_request_id, uuid5_of
from services.table.state.agreeing import Faults, check_format
from services.table.state.packed_rulebooks import pack_rulebook
from services.table.state.state import Config

NAME_MAX: Final = 64
ACTION_MS_MIN: Final = 100
ACTION_MS_MAX: Final = 300_000
HAND_PAUSE_MS_MAX: Final = 60_000

_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_SCHEDULE: Final = re.compile(r"[A-Za-z0-9._:-]{0,64}")


class NewTable(NamedTuple):
    """A table to be created; its rake schedule is still to be asked for."""

    table_id: str
    config: Config
    rake_schedule_id: str
    rake_on_third: RakeOnThird
    """The house's rule about hands that end on third street, which goes before the schedule's."""


def new_table(request: table_pb2.CreateTableRequest) -> NewTable:
    """The table that a request asks for. Raises InvalidArgument with every fault."""
    check_request_id(request.request_id)
    faults: Faults = []
    rulebook = _rulebook(request, faults)
    stake = _stake(request, rulebook, faults) if rulebook is not None else None
    _check_plain(request, faults)
    agreed = check_format(request, rulebook, faults)
    if faults or rulebook is None or stake is None:
        text = "; ".join(f"{field}: {reason}" for field, reason in faults)
        raise InvalidArgument("BAD_TABLE", text, violations=faults)
    clock = rulebook.clock
    config = Config(
        name=request.name,
        rulebook=pack_rulebook(rulebook),
        stake=astuple(stake)[:7],
        seats=request.seats,
        currency=request.currency,
        rake_schedule=b"",
        action_ms=request.action_ms or (clock.act_s + clock.countdown_s) * MS_PER_S,
        hand_pause_ms=request.hand_pause_ms,
        request_digest=_digest(request),
        format=agreed,
    )
    return NewTable(
        uuid5_of("table", request.request_id),
        config,
        request.rake_schedule_id,
        rulebook.rake_on_third_street,
    )


def _check_plain(request: table_pb2.CreateTableRequest, faults: Faults) -> None:
    if not 1 <= len(request.name) <= NAME_MAX or not request.name.isprintable():
        faults.append(("name", f"must be 1 to {NAME_MAX} printable characters"))
    if not 2 <= request.seats <= SEATS_MAX:
        faults.append(("seats", f"must be 2 to {SEATS_MAX}"))
    if not _CURRENCY.fullmatch(request.currency):
        faults.append(("currency", "must be three capital letters"))
    if not _SCHEDULE.fullmatch(request.rake_schedule_id):
        faults.append(("rake_schedule_id", "must be at most 64 of A-Z a-z 0-9 . _ : -"))
    if request.action_ms and not ACTION_MS_MIN <= request.action_ms <= ACTION_MS_MAX:
        faults.append(("action_ms", f"must be 0 or {ACTION_MS_MIN} to {ACTION_MS_MAX}"))
    if not 0 <= request.hand_pause_ms <= HAND_PAUSE_MS_MAX:
        faults.append(("hand_pause_ms", f"must be 0 to {HAND_PAUSE_MS_MAX}"))


def _rulebook(request: table_pb2.CreateTableRequest, faults: Faults) -> Rulebook | None:
    if bool(request.rulebook) == bool(request.rulebook_toml):
        faults.append(("rulebook", "give a shipped rulebook's name or rulebook_toml, one of them"))
        return None
    if request.rulebook:
        try:
            return shipped(request.rulebook)
        except KeyError:
            faults.append(("rulebook", f"must be one of {', '.join(shipped_names())}"))
            return None
    try:
        return parse_rulebook(request.rulebook_toml, "rulebook_toml")
    except RulebookError as error:
        faults.extend((_within_toml(each.field), each.reason) for each in error.faults)
        return None


def _within_toml(field: str) -> str:
    """Where a rulebook has a fault, as a field of the request; "file" is the text itself."""
    return "rulebook_toml" if field == "file" else f"rulebook_toml.{field}"


def _stake(
    request: table_pb2.CreateTableRequest, rulebook: Rulebook, faults: Faults
) -> Stake | None:
    if bool(request.stake_name) == request.HasField("stake"):
        faults.append(("stake", "give a stake's name or a stake, one of them"))
        return None
    if request.stake_name:
        try:
            return rulebook.stake(request.stake_name)
        except KeyError:
            names = ", ".join(stake.name for stake in rulebook.stakes)
            faults.append(("stake_name", f"must be one of {names}"))
            return None
    given = request.stake
    stake = Stake(
        name=given.name or f"{given.small_bet}/{given.big_bet}",
        ante=given.ante,
        bring_in=given.bring_in,
        small_bet=given.small_bet,
        big_bet=given.big_bet,
        buy_in_min=given.buy_in_min,
        buy_in_max=given.buy_in_max,
    )
    before = len(faults)
    if len(stake.name) > NAME_MAX:
        faults.append(("stake.name", f"at most {NAME_MAX} characters"))
    for field in ("ante", "bring_in", "small_bet", "big_bet", "buy_in_min", "buy_in_max"):
        if not 0 <= getattr(stake, field) <= UNITS_MAX:
            faults.append((f"stake.{field}", f"must be 0 to {UNITS_MAX}"))
    faults.extend((each.field, each.reason) for each in check_stake(rulebook, stake))
    return stake if len(faults) == before else None


def _digest(request: table_pb2.CreateTableRequest) -> bytes:
    return hashlib.blake2b(request.SerializeToString(deterministic=True), digest_size=8).digest()
