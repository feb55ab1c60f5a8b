"""Hands that were asked for arrive at a mail server, once each, whatever happens on the way."""

import asyncio
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from doorcard.history.v1 import history_pb2 as pb

from services.runtime.errors import Unavailable
from services.settlement.letters import LetterWriter
from services.settlement.mails import Mails
from services.settlement.peers import Peers
from services.settlement.post_office import PostOffice
from tests import hand_records as hands
from tests.contract.settlement.conftest import ask, settings_for
from tests.contract.settlement.fakes import FakeRoom


@dataclass
class Sink:
    """Keeps what arrives; refuses recipients named nobody and, if told so, every mail."""

    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[str] = field(default_factory=list)
    answer: str = "250 kept"

    async def handle_RCPT(  # noqa: N802 (the library's name)
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        if address.startswith("nobody"):
            return f"550 no such user {address}"
        envelope.rcpt_tos.append(address)
        return "250 known"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        if self.answer.startswith("250"):
            self.recipients += envelope.rcpt_tos
            message = message_from_bytes(envelope.content, policy=policy.default)
            assert isinstance(message, EmailMessage)
            self.mails.append(message)
        return self.answer


class _FreePort(Controller):
    """A controller that listens on whatever port is free."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]


@pytest.fixture
def sink() -> Iterator[tuple[Sink, str]]:
    """A mail server and its address."""
    keeps = Sink()
    controller = _FreePort(keeps, hostname="127.0.0.1", port=0)
    controller.start()
    yield keeps, f"127.0.0.1:{controller.port}"
    controller.stop()


Sender = Callable[..., Mails]


@pytest.fixture
def sender(fake_room: FakeRoom, peers: Peers, sink: tuple[Sink, str]) -> Sender:
    """Mails that go to the sink, or with `smtp_address` elsewhere."""

    def make(**fields: Any) -> Mails:
        settings = settings_for(fake_room, **{"smtp_address": sink[1], **fields})
        return Mails(peers, LetterWriter("hands@room.example"), lambda: PostOffice(settings))

    return make


def outcomes(room: FakeRoom) -> list[tuple[int, str]]:
    return [(each.outcome, each.reason) for each in room.history.completed]


def test_every_due_hand_goes_to_who_asked_and_holds_what_he_may_see(
    fake_room: FakeRoom, sender: Sender, sink: tuple[Sink, str]
) -> None:
    asked = [ask(fake_room, player_id) for player_id in hands.NAMES.values()]
    assert sender().send_due() == 4
    assert sink[0].recipients == [each.address for each in asked]
    assert outcomes(fake_room) == [(pb.EMAIL_STATE_SENT, "")] * 4
    for mail, request in zip(sink[0].mails, asked, strict=True):
        assert mail["Message-ID"] == f"<{request.email_request_id}@room.example>"
        whole = "".join(
            body.get_content() for kind in ("plain", "html") if (body := mail.get_body((kind,)))
        )
        for seat in (2, 5):
            for card in hands.down_cards_of(seat):
                seen = re.search(rf"\b{card}\b", whole) is not None
                assert seen == (hands.NAMES[seat] == request.player_id)
        assert not re.search(r"@example\.net", whole)


def test_a_mail_whose_report_was_lost_is_recognised_by_its_message_id(
    fake_room: FakeRoom, sender: Sender, sink: tuple[Sink, str]
) -> None:
    request = ask(fake_room, "anna")
    fake_room.away.services.add("completions")
    with pytest.raises(Unavailable):
        sender().send_due()
    fake_room.away.services.clear()
    request.attempt = 2
    fake_room.history.due.append(request)
    assert sender().send_due() == 1
    first, second = sink[0].mails
    assert first["Message-ID"] == second["Message-ID"]


def test_a_refused_address_fails_alone_and_its_name_is_not_told(
    fake_room: FakeRoom, sender: Sender, sink: tuple[Sink, str], capsys: pytest.CaptureFixture[str]
) -> None:
    ask(fake_room, "anna", "nobody@example.net")
    ask(fake_room, "carla")
    assert sender().send_due() == 1
    assert outcomes(fake_room) == [
        (pb.EMAIL_STATE_FAILED, "RECIPIENT_REFUSED"),
        (pb.EMAIL_STATE_SENT, ""),
    ]
    assert "nobody@" not in capsys.readouterr().out


def test_a_server_that_refuses_the_mail_is_told_by_its_code(
    fake_room: FakeRoom, sender: Sender, sink: tuple[Sink, str]
) -> None:
    sink[0].answer = "554 not for anna@example.net"
    ask(fake_room, "anna")
    assert sender().send_due() == 0
    assert outcomes(fake_room) == [(pb.EMAIL_STATE_FAILED, "REFUSED_554")]


def test_a_server_that_is_away_is_tried_once_a_run(fake_room: FakeRoom, sender: Sender) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound, but nobody listens
        address = f"127.0.0.1:{bound.getsockname()[1]}"
        for player_id in ("anna", "ben"):
            ask(fake_room, player_id)
        assert sender(smtp_address=address).send_due() == 0
    assert outcomes(fake_room) == [(pb.EMAIL_STATE_FAILED, "UNREACHABLE_CONNECTIONREFUSEDERROR")]
    assert len(fake_room.history.due) == 1


def test_a_server_that_never_answers_costs_its_timeout(fake_room: FakeRoom, sender: Sender) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        ask(fake_room, "anna")
        assert sender(smtp_address=address, smtp_timeout_seconds=0.2).send_due() == 0
    ((outcome, reason),) = outcomes(fake_room)
    assert outcome == pb.EMAIL_STATE_FAILED
    assert reason.startswith("UNREACHABLE_")


def test_a_hand_that_cannot_be_told_keeps_nobody_else_s_mail(
    fake_room: FakeRoom, sender: Sender, sink: tuple[Sink, str]
) -> None:
    broken = ask(fake_room, "anna")
    broken.hand.started.seconds = 10**14  # no calendar has this year
    ask(fake_room, "carla")
    assert sender().send_due() == 1
    (failed, _), (sent, _) = outcomes(fake_room)
    assert (failed, sent) == (pb.EMAIL_STATE_FAILED, pb.EMAIL_STATE_SENT)
