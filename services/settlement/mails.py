"""Sends the hands that players asked for."""

from collections.abc import Callable
from typing import Final

from doorcard.history.v1 import history_pb2
from google.protobuf.duration_pb2 import Duration

from services.runtime.clock import monotonic_s
from services.runtime.logs import logger
from services.settlement import meters
from services.settlement.letters import LetterWriter
from services.settlement.peers import Peers
from services.settlement.post_office import NotDelivered, PostOffice

LEASE_S: Final = 60
"""Longer than a task may run: nobody else takes a mail that is still being sent."""
BUDGET_S: Final = 10.0
"""For one run; what is left over is due for the next one."""


class Mails:
    """Claims due requests one by one, sends them and reports what became of each."""

    def __init__(
        self, peers: Peers, writer: LetterWriter, post_office: Callable[[], PostOffice]
    ) -> None:
        self._peers = peers
        self._writer = writer
        self._post_office = post_office

    def send_due(self) -> int:
        """Send what is due until there is nothing more, the time is over or the mail server is
        away; how many were sent. Raises DoorcardError while history is away.
        """
        until_s = monotonic_s() + BUDGET_S
        sent = 0
        with self._post_office() as post_office:
            while monotonic_s() < until_s:
                request = self._claim()
                if request is None:
                    break
                failure = self._send(post_office, request)
                self._complete(request, failure)
                sent += failure is None
                if failure is not None and failure.server_down:
                    break
        return sent

    def _claim(self) -> history_pb2.EmailRequest | None:
        request = history_pb2.ClaimEmailRequestsRequest(limit=1, lease=Duration(seconds=LEASE_S))
        claimed = self._peers.call(self._peers.history.ClaimEmailRequests, request).requests
        return claimed[0] if claimed else None

    def _send(
        self, post_office: PostOffice, request: history_pb2.EmailRequest
    ) -> NotDelivered | None:
        try:
            post_office.deliver(self._writer.letter(request))
        except NotDelivered as failure:
            return failure
        except Exception as error:
            # A hand that cannot be told must not keep the others; its text may hold cards.
            kind = type(error).__name__.upper()
            return NotDelivered(f"NOT_WRITTEN_{kind}", server_down=False)
        return None

    def _complete(self, request: history_pb2.EmailRequest, failure: NotDelivered | None) -> None:
        sent = failure is None
        reason = "" if failure is None else failure.reason
        meters.MAILS.labels("sent" if sent else "failed").inc()
        if failure is None:
            logger.info("mail_sent", request=request.email_request_id, hand=request.hand.hand_id)
        else:
            logger.warning(
                "mail_not_sent",
                hand=request.hand.hand_id,
                request=request.email_request_id,
                attempt=request.attempt,
                reason=reason,
            )
        report = history_pb2.CompleteEmailRequestRequest(
            email_request_id=request.email_request_id,
            attempt=request.attempt,
            outcome=history_pb2.EMAIL_STATE_SENT if sent else history_pb2.EMAIL_STATE_FAILED,
            reason=reason,
        )
        self._peers.call(self._peers.history.CompleteEmailRequest, report)
