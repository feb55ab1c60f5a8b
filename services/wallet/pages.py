"""Pages of lists: sizes within bounds, and tokens that say where the next page begins."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from services.runtime.errors import InvalidArgument
from services.runtime.ids import check_uuid
from services.wallet.ledger.reservations import Reservation
from services.wallet.ledger.statement import Line

SIZE_MAX: Final = 500
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def page_size(asked: int, default: int) -> int:
    """How many to a page; 0 asks for the default. Raises InvalidArgument."""
    if not 0 <= asked <= SIZE_MAX:
        raise InvalidArgument.of_field("page_size", f"must be 0 to {SIZE_MAX}", "BAD_PAGE")
    return asked or default


def statement_token(last: Line) -> str:
    """The next page begins below this line."""
    return str(last.entry)


def statement_position(token: str) -> int | None:
    """None for the first page. Raises InvalidArgument."""
    if not token:
        return None
    if not re.fullmatch("[0-9]{1,18}", token):
        raise _bad_token()
    return int(token)


def pending_token(last: Reservation) -> str:
    """The next page begins after this reservation."""
    return f"{(last.created - _EPOCH) // _MICROSECOND}.{last.reservation_id}"


def pending_position(token: str) -> tuple[datetime, str] | None:
    """None for the first page. Raises InvalidArgument."""
    if not token:
        return None
    microseconds, _, reservation_id = token.partition(".")
    if not re.fullmatch("[0-9]{1,17}", microseconds):
        raise _bad_token()
    at = _EPOCH + int(microseconds) * _MICROSECOND
    return at, check_uuid(reservation_id, "page_token")


def _bad_token() -> InvalidArgument:
    return InvalidArgument.of_field("page_token", "is none that was given out", "BAD_PAGE")
