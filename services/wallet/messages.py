"""Between the contract's messages and the ledger's own words."""

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import cast

from doorcard.game.v1 import game_pb2
from doorcard.wallet.v1 import wallet_pb2 as pb
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from services.game.pots import Pot
from services.game.rulebook import Game
from services.runtime.errors import InvalidArgument
from services.runtime.ids import check_player_id, check_request_id, check_uuid
from services.runtime.shards import shard_of
from services.wallet import pages
from services.wallet.entries import (
    CashOut,
    Commit,
    Entry,
    Hand,
    Malformed,
    Note,
    Parked,
    Progress,
    Release,
)
from services.wallet.ledger import rake_report, verify
from services.wallet.ledger.lookup import PURPOSES, AccountRow, Found
from services.wallet.ledger.parked import Held
from services.wallet.ledger.reservations import Reservation
from services.wallet.ledger.shards import SittingEscrow
from services.wallet.ledger.statement import Line
from services.wallet.money import check_amount, check_currency
from services.wallet.rake import Cap, Rounding, Schedule, Step

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

AGE_MAX = timedelta(days=366)
STAKE_MAX = 64
"""Characters of a stake's name that are kept."""
_GAMES: dict[int, str] = {number: name for name, number in game_pb2.Game.items()}

_ROUNDINGS = {
    pb.RAKE_ROUNDING_UNSPECIFIED: Rounding.DOWN,
    pb.RAKE_ROUNDING_DOWN: Rounding.DOWN,
    pb.RAKE_ROUNDING_HALF_EVEN: Rounding.HALF_EVEN,
}


def entry_of(message: pb.LedgerEntry, shard: int, shards: int) -> Entry:
    """An outbox entry. What cannot be understood becomes Malformed, so that only its table waits.

    Raises InvalidArgument for an entry id that is none.
    """
    return Entry(
        message.seq,
        _uuid(message.entry_id, "entries.entry_id"),
        message.previous_entry_id.lower(),
        # PostgreSQL keeps no NUL; whatever else it is, it can at least be parked.
        message.table_id.lower().replace("\0", ""),
        message.currency,
        _work_of(message, shard, shards),
        message.SerializeToString,
    )


def _work_of(
    message: pb.LedgerEntry, shard: int, shards: int
) -> Hand | Commit | Release | CashOut | Note | Malformed:
    try:
        if shard_of(_uuid(message.table_id, "table_id"), shards) != shard:
            return Malformed("WRONG_SHARD")
        match message.WhichOneof("entry"):
            case "hand":
                return _hand_of(message.hand)
            case "commit":
                return Commit(_uuid(message.commit.reservation_id, "reservation_id"))
            case "release":
                return Release(_uuid(message.release.reservation_id, "reservation_id"))
            case "cash_out":
                cash_out = message.cash_out
                return CashOut(cash_out.sitting_id, cash_out.player_id, cash_out.amount)
            case "note":
                return Note()
    except InvalidArgument:
        return Malformed("BAD_ID")
    return Malformed("UNKNOWN_ENTRY")


def _hand_of(hand: pb.HandSettlement) -> Hand:
    """Raises InvalidArgument for a hand id that is none."""
    ended = None
    if hand.HasField("ended"):
        with suppress(InvalidArgument):
            ended = time_of(hand.ended, "ended")
    return Hand(
        _uuid(hand.hand_id, "hand_id"),
        tuple([(net.sitting_id, net.amount) for net in hand.nets]),
        hand.rake,
        tuple([(share.sitting_id, share.contributed) for share in hand.dealt_in]),
        hand.game if hand.game in _GAMES else 0,
        # PostgreSQL keeps no NUL.
        hand.stake[:STAKE_MAX].replace("\0", ""),
        ended,
    )


def _uuid(value: str, field: str) -> str:
    return value if _UUID.fullmatch(value) else check_uuid(value, field)


def game_of(number: int) -> Game | None:
    """The game of a contract's number; None for none. Raises InvalidArgument for an unknown one."""
    if number not in _GAMES:
        raise InvalidArgument.of_field("game", "is none that exists", "BAD_GAME")
    if number == game_pb2.GAME_UNSPECIFIED:
        return None
    return Game(_GAMES[number].removeprefix("GAME_").lower())


def schedule_of(message: pb.RakeSchedule) -> Schedule:
    """A schedule as it travels. Raises InvalidArgument for a rounding that does not exist."""
    rounding = _ROUNDINGS.get(message.rounding)
    if rounding is None:
        raise InvalidArgument.of_field("schedule.rounding", "unknown", "BAD_SCHEDULE")
    return Schedule(
        schedule_id=message.schedule_id,
        version=message.version,
        basis_points=message.basis_points,
        per_full=message.per_full,
        units=message.units,
        caps=tuple(Cap(cap.players_from, cap.cap) for cap in message.caps),
        minimum_pot=message.minimum_pot,
        no_rake_on_third=message.no_rake_on_third,
        rounding=rounding,
        staircase=tuple(Step(step.pot_from, step.rake) for step in message.staircase),
    )


def schedule_message(schedule: Schedule) -> pb.RakeSchedule:
    """A schedule to travel."""
    half_even = schedule.rounding is Rounding.HALF_EVEN
    return pb.RakeSchedule(
        schedule_id=schedule.schedule_id,
        version=schedule.version,
        basis_points=schedule.basis_points,
        per_full=schedule.per_full,
        units=schedule.units,
        caps=[pb.RakeCap(players_from=cap.players_from, cap=cap.cap) for cap in schedule.caps],
        minimum_pot=schedule.minimum_pot,
        no_rake_on_third=schedule.no_rake_on_third,
        rounding=pb.RAKE_ROUNDING_HALF_EVEN if half_even else pb.RAKE_ROUNDING_DOWN,
        staircase=[
            pb.RakeStep(pot_from=step.pot_from, rake=step.rake) for step in schedule.staircase
        ],
    )


def pots_of(messages: Iterable[game_pb2.Pot]) -> tuple[Pot, ...]:
    """Pots, main pot first."""
    return tuple(Pot(pot.amount, tuple(pot.seats)) for pot in messages)


def progress_message(progress: Progress) -> pb.Progress:
    """How far a shard is applied."""
    return pb.Progress(**progress._asdict())


def parked_messages(parked: Iterable[Parked]) -> list[pb.ParkedEntry]:
    """Parked entries, with their content where it was read."""
    return [
        pb.ParkedEntry(
            seq=each.seq,
            entry_id=each.entry_id,
            table_id=each.table_id,
            reason=each.reason,
            content=pb.LedgerEntry.FromString(each.content) if each.content else None,
        )
        for each in parked
    ]


def escrow_messages(escrow: Iterable[SittingEscrow]) -> list[pb.SittingEscrow]:
    """Posted escrow by sitting."""
    return [pb.SittingEscrow(**each._asdict()) for each in escrow]


def escrow_of(message: pb.SittingEscrow) -> SittingEscrow:
    """Escrow of a sitting as a table names it. Raises InvalidArgument."""
    return SittingEscrow(
        sitting_id=check_request_id(message.sitting_id, "sittings.sitting_id"),
        player_id=check_player_id(message.player_id, "sittings.player_id"),
        table_id=check_uuid(message.table_id, "sittings.table_id"),
        amount=check_amount(message.amount, "sittings.amount"),
        currency=check_currency(message.currency, "sittings.currency"),
    )


def held_message(held: Held, *, whole: bool = True) -> pb.ParkedEntry:
    """A parked entry; `whole` with what it was to do."""
    message = pb.ParkedEntry(
        shard=held.shard,
        epoch=held.epoch,
        seq=held.seq,
        entry_id=held.entry_id,
        table_id=held.table_id,
        reason=held.reason,
        parked=timestamp_of(held.at),
        content=pb.LedgerEntry.FromString(held.content) if whole else None,
        resolved_by=held.resolved_by,
        resolution=held.resolution,
    )
    if held.resolved is not None:
        message.resolved.FromDatetime(held.resolved)
    return message


def reservation_message(reservation: Reservation) -> pb.Reservation:
    """A reservation."""
    return pb.Reservation(
        reservation_id=reservation.reservation_id,
        player_id=reservation.player_id,
        table_id=reservation.table_id,
        sitting_id=reservation.sitting_id,
        amount=reservation.amount,
        currency=reservation.currency,
        state=cast("pb.ReservationState.ValueType", reservation.state),
        created=timestamp_of(reservation.created),
    )


def transfer_message(line: Line) -> pb.Transfer:
    """A line of a statement."""
    return pb.Transfer(
        transfer_id=str(line.entry),
        kind=cast("pb.TransferKind.ValueType", line.kind),
        amount=line.amount,
        balance=line.balance,
        currency=line.currency,
        at=timestamp_of(line.at),
        table_id=line.table_id,
        reference=line.reference,
        reason=line.reason,
        reverses_transfer_id=_number_text(line.reverses),
    )


def found_message(found: Found, *, staff: bool) -> pb.GetTransferResponse:
    """A transfer; who made it and from what request is for staff."""
    return pb.GetTransferResponse(
        transfer_id=str(found.entry),
        kind=cast("pb.TransferKind.ValueType", found.kind),
        at=timestamp_of(found.at),
        lines=[
            pb.TransferLine(
                kind=cast("pb.TransferKind.ValueType", line.kind),
                debit=account_message(line.debit),
                credit=account_message(line.credit),
                amount=line.amount,
            )
            for line in found.lines
        ],
        table_id=found.table_id,
        hand_id=found.hand_id,
        reference=found.reference,
        reason=found.reason,
        made_by=found.made_by if staff else "",
        source_id=found.source if staff else "",
        reverses_transfer_id=_number_text(found.reverses),
        reversed_by_transfer_id=_number_text(found.reversed_by),
    )


def account_message(account: AccountRow) -> pb.Account:
    """An account."""
    purpose = cast("pb.AccountPurpose.ValueType", PURPOSES.index(account.purpose))
    return pb.Account(**{**account._asdict(), "purpose": purpose})


def _number_text(number: int | None) -> str:
    return "" if number is None else str(number)


def verified_message(page: verify.Page) -> pb.VerifyLedgerResponse:
    """A part of the ledger that was looked at."""
    return pb.VerifyLedgerResponse(
        faults=[
            pb.LedgerFault(
                kind=cast("pb.FaultKind.ValueType", each.kind),
                seal=each.seal,
                row=each.row,
                detail=each.detail,
            )
            for each in page.findings
        ],
        seals=page.seals,
        rows=page.rows,
        accounts=page.accounts,
        last_seal=page.last.number,
        last_hash=page.last.hash,
        unsealed=page.unsealed,
        next_page_token=pages.ledger_token(page.next),
    )


def rake_message(line: rake_report.Line) -> pb.RakeLine:
    """A line of a rake report."""
    return pb.RakeLine(
        day=line.day,
        game=cast("game_pb2.Game.ValueType", line.game),
        stake=line.stake,
        table_id=line.table_id,
        player_id=line.player_id,
        hands=line.hands,
        rake=line.rake,
        dealt_thousandths=line.dealt,
        contributed_thousandths=line.contributed,
    )


def day_of(text: str, field: str) -> date | None:
    """A day as YYYY-MM-DD; None for an empty text. Raises InvalidArgument."""
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()  # noqa: DTZ007 (a day has no zone)
    except ValueError:
        raise InvalidArgument.of_field(field, "must be YYYY-MM-DD", "BAD_DAY") from None


def timestamp_of(at: datetime) -> Timestamp:
    """Microseconds are kept."""
    stamp = Timestamp()
    stamp.FromDatetime(at)
    return stamp


def duration_of(duration: Duration, field: str) -> timedelta:
    """A length of time up to a year, to microseconds. Raises InvalidArgument."""
    if not 0 <= duration.seconds < AGE_MAX.total_seconds() or not 0 <= duration.nanos < 10**9:
        raise InvalidArgument.of_field(field, f"must be from 0 to {AGE_MAX.days} days")
    return timedelta(seconds=duration.seconds, microseconds=duration.nanos // 1000)


def time_of(stamp: Timestamp, field: str) -> datetime:
    """A time in UTC, rounded down to microseconds. Raises InvalidArgument."""
    try:
        return stamp.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise InvalidArgument.of_field(field, "is not a time") from None
