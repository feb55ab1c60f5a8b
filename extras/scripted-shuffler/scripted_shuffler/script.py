"""What is to be dealt: decks by table, one hand after the other."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from services.game.cards import CARDS, parse_cards
from services.shuffler.receipts import HandContext

ANY_TABLE: Final = "*"


def deck_of(cards: str | Sequence[int | None], unused: Sequence[int] = range(CARDS)) -> list[int]:
    """A whole deck that begins with `cards` (letters, or ints with None for "any card"); the cards
    that are not named fill the gaps and the rest in the order of `unused`.
    """
    given = list(parse_cards(cards)) if isinstance(cards, str) else list(cards)
    spare = iter([card for card in unused if card not in given])
    return [card if card is not None else next(spare) for card in given] + list(spare)


@dataclass(frozen=True)
class ScriptedDeck:
    """The deck of one hand, from the top."""

    cards: Sequence[int]
    reshuffled: Sequence[int] = ()
    """The order in which a reshuffle gives its cards; empty: by the deck's seed."""


class Script:
    """Decks by table id, used up hand by hand. A hand that asks again gets its deck again."""

    def __init__(self, decks: Mapping[str, Sequence[ScriptedDeck]]) -> None:
        self._waiting = {table: list(each) for table, each in decks.items()}
        self._dealt: dict[tuple[str, str], ScriptedDeck | None] = {}

    def deck(self, hand: HandContext) -> ScriptedDeck | None:
        """The deck of a hand; None if the script has none for it."""
        key = (hand.table_id, hand.hand_id)
        if key not in self._dealt:
            waiting = self._waiting.get(hand.table_id, self._waiting.get(ANY_TABLE, []))
            self._dealt[key] = waiting.pop(0) if waiting else None
        return self._dealt[key]

    @classmethod
    def load(cls, path: Path) -> "Script":
        """From a file as the text of the package has it."""
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls({table: [_scripted(each) for each in decks] for table, decks in content.items()})


def _scripted(entry: Mapping[str, str]) -> ScriptedDeck:
    return ScriptedDeck(deck_of(entry["cards"]), parse_cards(entry.get("reshuffled", "")))
