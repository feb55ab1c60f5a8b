"""The e-mail that carries a hand: plain text and HTML of the same lines."""

from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

from doorcard.history.v1.history_pb2 import EmailRequest
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from services.settlement.hand_text import tell


class LetterWriter:
    """Writes letters from one sender. mail_from: a plain address."""

    def __init__(self, mail_from: str) -> None:
        self._mail_from = mail_from
        self._domain = mail_from.rpartition("@")[2]
        templates = Environment(
            loader=PackageLoader("services.settlement"),
            autoescape=select_autoescape(("html", "html.j2"), default=False),
            undefined=StrictUndefined,
            keep_trailing_newline=True,
        )
        self._text = templates.get_template("hand.txt.j2")
        self._html = templates.get_template("hand.html.j2")

    def letter(self, request: EmailRequest) -> EmailMessage:
        """The e-mail of a request. Its Message-ID is the request's: a second try is recognised."""
        hand = tell(request.hand, request.player_id)
        message = EmailMessage()
        message["From"] = self._mail_from
        message["To"] = request.address
        message["Subject"] = f"Hand history: {hand.title}"
        message["Date"] = format_datetime(datetime.now(UTC))
        message["Message-ID"] = f"<{request.email_request_id}@{self._domain}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(self._text.render(hand=hand))
        message.add_alternative(self._html.render(hand=hand), subtype="html")
        return message
