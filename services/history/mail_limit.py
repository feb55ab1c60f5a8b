"""How many mails may be asked for from one network address: a token bucket for each, in this
process, since the archive has no Redis. The bound on a player's mails is in the database
(`store.Archive.request_email`).
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from services.runtime.clock import monotonic_s
from services.runtime.errors import ResourceExhausted
from services.runtime.interceptors import Knock
from services.runtime.origins import origin_of

METHOD: Final = "/doorcard.history.v1.HistoryService/RequestHandEmail"
HOUR_S: Final = 3600
ADDRESSES_MAX: Final = 50_000
"""Those that asked last; more of them than ask in an hour."""


class MailLimit:
    """The gate before the archive. per_hour: mails from one address, and so many at once."""

    def __init__(self, per_hour: int, now_s: Callable[[], float] = monotonic_s) -> None:
        self._refill_s = HOUR_S / per_hour
        self._now_s = now_s
        self._full_at_s: OrderedDict[str, float] = OrderedDict()

    async def admit(self, knock: Knock) -> None:
        """Raises ResourceExhausted (RATE_LIMITED; metadata `limit`: mails.address)."""
        origin = origin_of(knock) if knock.method == METHOD else ""
        if not origin:
            return
        now_s = self._now_s()
        full_at_s = max(now_s, self._full_at_s.get(origin, 0.0)) + self._refill_s
        over_s = full_at_s - now_s - HOUR_S
        # A millisecond for the rounding of what was added up.
        if over_s > 0.001:
            raise ResourceExhausted(
                "RATE_LIMITED",
                "too many e-mails are asked for from one address",
                metadata={"limit": "mails.address"},
                retry_after_ms=int(over_s * 1000) + 1,
            )
        self._full_at_s[origin] = full_at_s
        self._full_at_s.move_to_end(origin)
        while len(self._full_at_s) > ADDRESSES_MAX:
            self._full_at_s.popitem(last=False)
