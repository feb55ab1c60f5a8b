"""Pages of lists: sizes within bounds, and tokens that say where the next page begins."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from services.runtime import pages as paging
from services.runtime.errors import InvalidArgument
from services.runtime.ids import check_uuid
from services.wallet.ledger.parked import Held
from services.wallet.ledger.reservations import Reservation
from services.wallet.ledger.verify import Position

SIZE_MAX: Final = 500
TEXT_MAX: Final = 128
_NUMBER: Final = re.compile("[0-9]{1,18}")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def page_size(asked: int, default: int) -> int:
    """How many to a page; 0 asks for the default. Raises InvalidArgument."""
    return paging.page_size(asked, default, SIZE_MAX, "BAD_PAGE")


def number_token(position: int | None) -> str:
    """The next page begins beside this number; empty after the last page."""
    return "" if position is None else str(position)


def number_position(token: str) -> int | None:
    """None for the first page. Raises InvalidArgument."""
    if not token:
        return None
    if not _NUMBER.fullmatch(token):
        raise bad_token()
    return int(token)


def transfer_number(transfer_id: str) -> int:
    """The entry of the journal that a transfer's id names. Raises InvalidArgument."""
    if not _NUMBER.fullmatch(transfer_id):
        raise InvalidArgument.of_field(
            "transfer_id", "is not one that was given out", "BAD_TRANSFER_ID"
        )
    return int(transfer_id)


def pending_token(last: Reservation) -> str:
    """The next page begins after this reservation."""
    return f"{(last.created - _EPOCH) // _MICROSECOND}.{last.reservation_id}"


def pending_position(token: str) -> tuple[datetime, str] | None:
    """None for the first page. Raises InvalidArgument."""
    if not token:
        return None
    microseconds, _, reservation_id = token.partition(".")
    if not re.fullmatch("[0-9]{1,17}", microseconds):
        raise bad_token()
    at = _EPOCH + int(microseconds) * _MICROSECOND
    return at, check_uuid(reservation_id, "page_token")


def parked_token(last: Held) -> str:
    """The next page begins after this parked entry."""
    return f"{last.shard}.{last.epoch}.{last.seq}"


def parked_position(token: str) -> tuple[int, int, int]:
    """Before the first one for the first page. Raises InvalidArgument."""
    if not token:
        return (-1, 0, 0)
    if not re.fullmatch(r"[0-9]{1,5}\.[0-9]{1,18}\.[0-9]{1,18}", token):
        raise bad_token()
    shard, epoch, seq = map(int, token.split("."))
    return shard, epoch, seq


def ledger_token(position: Position | None) -> str:
    """The next page of a verification; empty after the last one."""
    if position is None:
        return ""
    if position.accounts:
        return f"a.{position.after}"
    return f"s.{position.after}.{position.hash.hex()}"


def ledger_position(token: str) -> Position:
    """The beginning of the chain for the first page. Raises InvalidArgument."""
    if not token:
        return Position()
    if re.fullmatch(r"a\.[0-9]{1,18}", token):
        return Position(True, int(token[2:]))
    if re.fullmatch(r"s\.[0-9]{1,18}\.[0-9a-f]{64}", token):
        _, number, digest = token.split(".")
        return Position(False, int(number), bytes.fromhex(digest))
    raise bad_token()


def text_token(key: str | None) -> str:
    """The next page begins after this key, which may be any text; empty after the last page."""
    return "" if key is None else f".{key}"


def text_position(token: str) -> str | None:
    """None for the first page. Raises InvalidArgument."""
    if not token:
        return None
    if not token.startswith(".") or len(token) > TEXT_MAX or "\0" in token:
        raise bad_token()
    return token[1:]


def bad_token() -> InvalidArgument:
    """For a token that was never given out."""
    return InvalidArgument.of_field("page_token", "is not one that was given out", "BAD_PAGE")
