"""The mail server, over SMTP. What it answers is reduced to a word: its texts hold addresses."""

import smtplib
import ssl
from email.message import EmailMessage
from types import TracebackType
from typing import Final

from services.runtime.listen import split_listen
from services.settlement.meters import SMTP
from services.settlement.settings import WorkerSettings

HELLO: Final = "doorcard"
"""Said in EHLO instead of this machine's name."""


class NotDelivered(Exception):  # noqa: N818 (what happened, in plain words)
    """A mail was not taken.

    reason: SCREAMING_SNAKE, without address or text of the server. server_down: the next mail
    would fare no better now.
    """

    def __init__(self, reason: str, *, server_down: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.server_down = server_down


class PostOffice:
    """One connection for the mails of one run, opened with the first of them."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._server: smtplib.SMTP | None = None

    def __enter__(self) -> "PostOffice":
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if self._server is not None:
            try:
                self._server.quit()
            except (OSError, smtplib.SMTPException):
                self._server.close()

    def deliver(self, message: EmailMessage) -> None:
        """Hand a mail to the server. Raises NotDelivered; then it is not known to have arrived."""
        try:
            with SMTP.timed("deliver"):
                if self._server is None:
                    self._server = self._connect()
                self._server.send_message(message)
        except smtplib.SMTPRecipientsRefused:
            raise NotDelivered("RECIPIENT_REFUSED", server_down=False) from None
        except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            raise NotDelivered(f"REFUSED_{error.smtp_code}", server_down=False) from None
        except smtplib.SMTPAuthenticationError:
            raise NotDelivered("LOGIN_REFUSED", server_down=True) from None
        except (OSError, smtplib.SMTPException) as error:
            kind = type(error).__name__.upper()
            raise NotDelivered(f"UNREACHABLE_{kind}", server_down=True) from None

    def _connect(self) -> smtplib.SMTP:
        settings = self._settings
        host, port = split_listen(settings.smtp_address)
        timeout_s = settings.smtp_timeout_seconds
        secured = ssl.create_default_context() if settings.smtp_security != "none" else None
        server: smtplib.SMTP
        if settings.smtp_security == "tls":
            server = smtplib.SMTP_SSL(host, port, HELLO, timeout=timeout_s, context=secured)
        else:
            server = smtplib.SMTP(host, port, HELLO, timeout=timeout_s)
        try:
            if settings.smtp_security == "starttls":
                server.starttls(context=secured)
            if settings.smtp_username:
                server.login(settings.smtp_username, settings.smtp_password.get_secret_value())
        except BaseException:
            server.close()
            raise
        return server
