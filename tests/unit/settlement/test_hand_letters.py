"""The e-mail of a hand: readable, complete, and without a card its reader may not see."""

import re

import pytest
from doorcard.game.v1.game_pb2 import POT_PART_HIGH, POT_PART_LOW, Award, HandEvent, Pot
from doorcard.history.v1.history_pb2 import EmailRequest, HandRecord

from services.history import views
from services.settlement.amounts import amount_text, currency_text
from services.settlement.hand_text import clean, tell
from services.settlement.letters import LetterWriter
from tests import hand_records as hands

SEATS = {name: seat for seat, name in hands.NAMES.items()}


def parts_of(
    record: HandRecord, reader: str, email_request_id: str = "e-1"
) -> tuple[str, str, str]:
    """Headers, plain text and HTML of the mail to a player."""
    letter = LetterWriter("hands@room.example").letter(
        EmailRequest(
            email_request_id=email_request_id,
            player_id=reader,
            address=f"{reader}@example.net",
            attempt=1,
            hand=views.for_player(record, reader),
        )
    )
    bodies = []
    for kind in ("plain", "html"):
        body = letter.get_body((kind,))
        assert body is not None
        bodies.append(body.get_content())
    headers = "\n".join(f"{name}: {value}" for name, value in letter.items())
    return headers, bodies[0], bodies[1]


def lines_of(record: HandRecord, reader: str = "anna") -> list[str]:
    told = tell(views.for_player(record, reader), reader)
    return [line for section in told.sections for line in [f"* {section.title}", *section.lines]]


@pytest.mark.parametrize("reader", hands.NAMES.values())
def test_a_mail_never_holds_the_hidden_cards_of_others(reader: str) -> None:
    for record in (hands.showdown(), hands.uncontested(), hands.uncontested(void=True)):
        contested = any(player.at_showdown for player in record.players)
        visible = {SEATS[reader]} | ({0, 3} if contested else set())
        whole = "\n".join(parts_of(record, reader))
        for seat in hands.CARDS.keys() - visible:
            for card in hands.down_cards_of(seat):
                assert not re.search(rf"\b{card}\b", whole), (reader, seat)
        assert hands.SEALED_DECK.decode() not in whole
        assert hands.INPUTS.decode() not in whole


def test_a_mail_tells_the_streets_the_showdown_the_pots_and_the_rake() -> None:
    _, text, _ = parts_of(hands.showdown(), "ben")
    told = [
        "Seven Card Stud, 5/10, play money",
        "Seat 3: Ben with 200 (you)",
        "Seat 6: Dan with 200 (button)",
        "Dan posts ante 1",
        "*** Third street ***",
        "Ben is dealt [Qd Qc] down, [3d] up",
        "Dan is dealt [?? ??] down, [9h] up",
        "Carla brings in for 2",
        "Dan completes to 5",
        "Carla calls 3",
        "*** Fourth street ***",
        "Anna bets 10",
        "Dan folds",
        "*** Seventh street ***",
        "*** Showdown ***",
        "Anna shows [As Ad Ks Kh 7c 4d 2h]: two pairs, aces and kings",
        "Carla mucks [Js Jd 3c 8c 8h 6s 5h]",
        "Anna wins 76 from the pot with two pairs, aces and kings",
        "Pot: 79 (Anna, Carla)",
        "Rake: 3",
        "Anna: +40, now 240",
        "Ben: -1, now 199",
    ]
    places = [text.find(line) for line in told]
    assert -1 not in places
    assert places == sorted(places)


def test_both_parts_tell_the_same_lines() -> None:
    record = hands.showdown()
    _, text, html = parts_of(record, "carla")
    for line in lines_of(record, "carla"):
        if not line.startswith("*"):
            assert line in text
            assert f">{line}</li>" in html


def test_an_uncontested_hand_and_a_void_one_are_told() -> None:
    lines = lines_of(hands.uncontested(), "ben")
    assert "Anna wins 4 from the pot" in lines
    assert "* Showdown" not in lines
    assert "The hand was void: every stake went back" in lines_of(hands.uncontested(void=True))


def test_side_pots_and_halves_have_their_names() -> None:
    record = hands.showdown()
    record.pots.append(Pot(amount=20, seats=[0, 3]))
    record.currency = "EUR"
    for pot, part in ((0, POT_PART_HIGH), (1, POT_PART_LOW)):
        award = Award(pot=pot, seat=0, amount=1250, part=part, hand_name="a wheel")
        record.events.add().awarded.CopyFrom(award)
    lines = lines_of(record)
    assert "Anna wins 12.50 from the main pot (high half) with a wheel" in lines
    assert "Anna wins 12.50 from the side pot 1 (low half) with a wheel" in lines
    assert "Main pot: 0.79 (Anna, Carla)" in lines
    assert "Side pot 1: 0.20 (Anna, Carla)" in lines


def test_every_event_has_a_line() -> None:
    record = hands.uncontested()
    del record.events[:]
    record.events.add().burned = 1
    record.events.add().deck_committed.reshuffled = True
    record.events.add().dealt.CopyFrom(HandEvent.Dealt(seat=-1, card="Qs", up=True))
    record.events.add().all_in = 2
    record.events.add().timed_out = 2
    record.events.add().protected = 2
    record.events.add().left = 2
    record.events.add().raised.CopyFrom(HandEvent.SeatAmount(seat=2, amount=30))
    record.events.add().uncalled.CopyFrom(HandEvent.SeatAmount(seat=2, amount=10))
    assert lines_of(record)[6:15] == [
        "A card is burned",
        "The remaining cards are shuffled anew",
        "Community card [Qs]",
        "Ben is all-in",
        "Ben runs out of time",
        "Ben keeps his cards and plays for what he has put in",
        "Ben leaves the table",
        "Ben raises to 30",
        "Ben gets 10 back that nobody called",
    ]


def test_names_can_neither_break_lines_nor_markup_nor_headers() -> None:
    record = hands.showdown()
    record.table_name = "Vienna\r\nBcc: eve@example.net"
    record.players[0].name = "<script>alert(1)</script>\nRake: 0\u202e"
    headers, text, html = parts_of(record, "anna")
    assert "\nBcc:" not in headers
    assert "\nRake: 0" not in text
    assert "\u202e" not in text
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_the_message_id_is_the_request_s_on_every_try() -> None:
    first, _, _ = parts_of(hands.showdown(), "anna", "0190a000-0000-7000-8000-0000000000ff")
    again, _, _ = parts_of(hands.showdown(), "anna", "0190a000-0000-7000-8000-0000000000ff")
    told = "Message-ID: <0190a000-0000-7000-8000-0000000000ff@room.example>"
    assert told in first
    assert told in again


@pytest.mark.parametrize(
    ("minor_units", "currency", "text"),
    [
        (1250, "EUR", "12.50"),
        (5, "EUR", "0.05"),
        (-1234567, "USD", "-12,345.67"),
        (1500, "JPY", "1,500"),
        (1500, "KWD", "1.500"),
        (1500, "XTS", "1,500"),
        (0, "XTS", "0"),
    ],
)
def test_amounts_are_written_in_the_currency_s_units(
    minor_units: int, currency: str, text: str
) -> None:
    assert amount_text(minor_units, currency) == text


def test_play_money_is_called_so() -> None:
    assert (currency_text("XTS"), currency_text("EUR")) == ("play money", "EUR")


def test_a_name_is_one_line_of_bounded_length() -> None:
    assert clean(" a\t b\u2028c\x00 ") == "a b c"
    assert len(clean("x" * 500)) == 40
