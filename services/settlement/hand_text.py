"""A finished hand told in lines, the way hand histories are read: seats, streets, showdown, pots.

Everything comes from the record as its reader may see it (docs/rules.md, 6, history on request);
this module adds no card to it.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC
from typing import Final

from doorcard.game.v1 import game_pb2
from doorcard.history.v1.history_pb2 import HandPlayer, HandRecord

from services.settlement.amounts import amount_text, currency_text

HIDDEN: Final = "??"
NAME_CHARACTERS_MAX: Final = 40
COMMUNITY: Final = -1

_GAMES: Final = {
    game_pb2.GAME_HIGH: "Seven Card Stud",
    game_pb2.GAME_HI_LO: "Seven Card Stud Hi-Lo, eight or better",
    game_pb2.GAME_RAZZ: "Razz",
}
_STREETS: Final = {
    3: "Third street", 4: "Fourth street", 5: "Fifth street", 6: "Sixth street",
    7: "Seventh street",
}  # fmt: skip
_PARTS: Final = {game_pb2.POT_PART_HIGH: " (high half)", game_pb2.POT_PART_LOW: " (low half)"}
_PLAIN: Final = {
    "checked": "checks",
    "folded": "folds",
    "all_in": "is all-in",
    "timed_out": "runs out of time",
    "protected": "keeps his cards and plays for what he has put in",
    "left": "leaves the table",
    "mucked": "mucks",
}
_AMOUNTS: Final = {
    "ante": "posts ante {}",
    "brought_in": "brings in for {}",
    "completed": "completes to {}",
    "bet": "bets {}",
    "raised": "raises to {}",
    "called": "calls {}",
    "uncalled": "gets {} back that nobody called",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the hand under its title."""

    title: str
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HandText:
    """A whole hand, ready for a template."""

    title: str
    facts: list[str]
    sections: list[Section]


def tell(hand: HandRecord, reader_id: str) -> HandText:
    """The hand for the player `reader_id`, from his view of it."""
    teller = _Teller(hand, reader_id)
    sections = [Section("Seats", teller.seats()), *teller.streets(), teller.result()]
    return HandText(title=teller.title(), facts=teller.facts(), sections=sections)


def title_of(hand: HandRecord) -> str:
    """One line that tells which hand it is; for a subject too."""
    return f"{clean(hand.table_name) or 'Table'}, {_when(hand)}"


def clean(text: str) -> str:
    """A name fit for one line: no control characters, no run of blanks, of bounded length."""
    printable = "".join(
        " " if unicodedata.category(each) in ("Cc", "Zl", "Zp") else each
        for each in text
        if unicodedata.category(each) not in ("Cf", "Cs", "Co", "Cn")
    )
    return " ".join(printable.split())[:NAME_CHARACTERS_MAX]


def _when(hand: HandRecord) -> str:
    return f"{hand.started.ToDatetime(tzinfo=UTC):%Y-%m-%d %H:%M:%S} UTC"


class _Teller:
    def __init__(self, hand: HandRecord, reader_id: str) -> None:
        self._hand = hand
        self._reader_id = reader_id
        self._players = {player.seat: player for player in hand.players}
        self._cards = {player.seat: list(player.cards) for player in hand.players}

    def title(self) -> str:
        return title_of(self._hand)

    def facts(self) -> list[str]:
        hand = self._hand
        game = _GAMES.get(hand.game, "Stud")
        return [
            f"Hand {hand.hand_id}",
            f"{game}, {clean(hand.stake.name)}, {currency_text(hand.currency)}",
            f"Ante {self._money(hand.stake.ante)}, bring-in {self._money(hand.stake.bring_in)},"
            f" bets {self._money(hand.stake.small_bet)} and {self._money(hand.stake.big_bet)}",
            f"House rules: {clean(hand.rulebook)}",
        ]

    def seats(self) -> list[str]:
        return [
            f"Seat {player.seat + 1}: {self._name(player.seat)}"
            f" with {self._money(player.starting_stack)}{self._marks(player)}"
            for player in self._hand.players
        ]

    def streets(self) -> list[Section]:
        section = Section("Before the deal")
        sections = [section]
        dealt: list[game_pb2.HandEvent.Dealt] = []
        for event in self._hand.events:
            kind = event.WhichOneof("event")
            if kind == "dealt":
                dealt.append(event.dealt)
                continue
            section.lines.extend(self._dealt_lines(dealt))
            dealt = []
            if kind == "street":
                title = _STREETS.get(event.street, f"Street {event.street}")
            elif kind == "pots":
                title = "Showdown" if self._shows() else "End of the hand"
            else:
                section.lines.extend(self._lines(event, kind or ""))
                continue
            section = Section(title)
            sections.append(section)
        section.lines.extend(self._dealt_lines(dealt))
        return [each for each in sections if each.lines]

    def result(self) -> Section:
        hand = self._hand
        lines = []
        if hand.void:
            lines.append("The hand was void: every stake went back")
        for number, pot in enumerate(hand.pots):
            names = ", ".join(self._name(seat) for seat in pot.seats)
            lines.append(f"{self._pot(number).capitalize()}: {self._money(pot.amount)} ({names})")
        if hand.pots:
            lines.append(f"Rake: {self._money(hand.rake)}")
        for player in hand.players:
            net = player.finishing_stack - player.starting_stack
            sign = "+" if net > 0 else ""
            lines.append(
                f"{self._name(player.seat)}: {sign}{self._money(net)},"
                f" now {self._money(player.finishing_stack)}"
            )
        if hand.deck_root:
            lines.append(f"The deck was committed to before the deal: {hand.deck_root.hex()}")
        return Section("Result", lines)

    def _lines(self, event: game_pb2.HandEvent, kind: str) -> Iterable[str]:
        if kind in _AMOUNTS:
            moved = getattr(event, kind)
            yield f"{self._name(moved.seat)} {_AMOUNTS[kind].format(self._money(moved.amount))}"
        elif kind == "mucked":
            cards = self._cards.get(event.mucked, [])
            yield f"{self._name(event.mucked)} mucks {_bracketed(cards)}"
        elif kind in _PLAIN:
            yield f"{self._name(getattr(event, kind))} {_PLAIN[kind]}"
        elif kind == "burned":
            yield "A card is burned" if event.burned == 1 else f"{event.burned} cards are burned"
        elif kind == "deck_committed" and event.deck_committed.reshuffled:
            yield "The remaining cards are shuffled anew"
        elif kind == "shown":
            named = f": {event.shown.hand_name}" if event.shown.hand_name else ""
            yield f"{self._name(event.shown.seat)} shows {_bracketed(event.shown.cards)}{named}"
        elif kind == "awarded":
            yield self._award(event.awarded)
        elif kind == "ended" and event.ended:
            yield clean(event.ended)

    def _award(self, award: game_pb2.Award) -> str:
        part = _PARTS.get(award.part, "")
        named = f" with {award.hand_name}" if award.hand_name else ""
        pot = self._pot(award.pot)
        return (
            f"{self._name(award.seat)} wins {self._money(award.amount)} from the {pot}{part}{named}"
        )

    def _dealt_lines(self, dealt: list[game_pb2.HandEvent.Dealt]) -> Iterable[str]:
        by_seat: dict[int, list[game_pb2.HandEvent.Dealt]] = {}
        for card in dealt:
            by_seat.setdefault(card.seat, []).append(card)
        for seat, cards in by_seat.items():
            if seat == COMMUNITY:
                yield f"Community card {_bracketed(card.card for card in cards)}"
                continue
            down = [card.card or HIDDEN for card in cards if not card.up]
            up = [card.card for card in cards if card.up]
            texts = [_bracketed(down) + " down"] if down else []
            texts += [_bracketed(up) + " up"] if up else []
            yield f"{self._name(seat)} is dealt {', '.join(texts)}"

    def _shows(self) -> bool:
        return any(event.WhichOneof("event") in ("shown", "mucked") for event in self._hand.events)

    def _marks(self, player: HandPlayer) -> str:
        marks = ["button"] if player.seat == self._hand.button else []
        marks += ["you"] if player.player_id == self._reader_id else []
        return f" ({', '.join(marks)})" if marks else ""

    def _name(self, seat: int) -> str:
        player = self._players.get(seat)
        return (clean(player.name) if player else "") or f"Seat {seat + 1}"

    def _pot(self, number: int) -> str:
        if len(self._hand.pots) < 2:
            return "pot"
        return "main pot" if number == 0 else f"side pot {number}"

    def _money(self, minor_units: int) -> str:
        return amount_text(minor_units, self._hand.currency)


def _bracketed(cards: Iterable[str]) -> str:
    return f"[{' '.join(card or HIDDEN for card in cards)}]"
