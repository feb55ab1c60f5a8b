"""A shuffler that speaks the contract and deals what a script says: for tests and adjudication.

It lives in tests only and says so in every deck it makes (DECK_SOURCE_SCRIPTED), which a table
accepts for play money (XTS) only. Hands without a script of their own get a fresh kernel deck,
marked as scripted all the same.

    async with scripted_shuffler(settings, Script({"table-1": [ScriptedDeck(deck_of("7c8d9s"))]})):

or as a process of its own, with the environment of a shuffler: `python -m tests.scripted_shuffler
SCRIPT.json`, where the file is `{"table-1": [{"cards": "7c8d9s", "reshuffled": ""}]}` and a table
"*" stands for every table that is not named.
"""

import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from doorcard.shuffler.v1 import shuffler_pb2 as pb
from doorcard.shuffler.v1 import shuffler_pb2_grpc
from grpc import aio

from services.game.cards import CARDS, parse_cards
from services.runtime.clock import now_ms
from services.runtime.sealing import SealKeys, new_key
from services.runtime.server import Register, Running, main, run, serving
from services.runtime.settings import ServiceSettings, load
from services.shuffler.commitment import Commitment
from services.shuffler.deck import Deck, fresh_deck
from services.shuffler.generator import KernelGenerator
from services.shuffler.receipts import HandContext, ReceiptKeys, deck_statement, reshuffle_statement
from services.shuffler.server import SERVICE_NAME, Context, ShufflerServicer
from services.shuffler.settings import ShufflerSettings

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
        """From a file as the module's text has it."""
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls({table: [_scripted(each) for each in decks] for table, decks in content.items()})


class ScriptedShuffler(ShufflerServicer):
    """A shuffler but for where the order comes from."""

    def __init__(self, script: Script, seal_keys: SealKeys, receipt_keys: ReceiptKeys) -> None:
        super().__init__(seal_keys, receipt_keys, KernelGenerator())
        self._script = script

    async def CreateDeck(  # noqa: N802
        self, request: pb.CreateDeckRequest, _context: Context
    ) -> pb.CreateDeckResponse:
        hand = HandContext(request.table_id, request.hand_id)
        deck = fresh_deck(self._generator)
        scripted = self._script.deck(hand)
        if scripted is not None:
            deck = Deck(tuple(scripted.cards), deck.salt_seed, deck.reshuffle_seed)
        root = Commitment(deck).root
        size = len(deck.cards)
        statement = deck_statement(hand, root, source="scripted", size=size, at_ms=now_ms())
        return pb.CreateDeckResponse(
            sealed_deck=self._sealed(deck, hand),
            root=root,
            receipt=self._signed(statement),
            source=pb.DECK_SOURCE_SCRIPTED,
            size=size,
        )

    async def Reshuffle(  # noqa: N802
        self, request: pb.ReshuffleRequest, _context: Context
    ) -> pb.ReshuffleResponse:
        hand = HandContext(request.table_id, request.hand_id)
        scripted = self._script.deck(hand)
        if scripted is None or not scripted.reshuffled:
            return await super().Reshuffle(request, _context)
        old = self._opened(request.sealed_deck, hand)
        by_seed = old.reshuffled(request.positions)
        if set(scripted.reshuffled) != set(by_seed.cards):
            raise ValueError("the script reshuffles other cards than the table asks for")
        deck = Deck(tuple(scripted.reshuffled), by_seed.salt_seed, by_seed.reshuffle_seed)
        root = Commitment(deck).root
        statement = reshuffle_statement(
            hand,
            root,
            old_root=Commitment(old).root,
            positions=request.positions,
            at_ms=now_ms(),
        )
        return pb.ReshuffleResponse(
            sealed_deck=self._sealed(deck, hand),
            root=root,
            receipt=self._signed(statement),
            size=len(deck.cards),
        )


@asynccontextmanager
async def scripted_shuffler(settings: ServiceSettings, script: Script) -> AsyncIterator[Running]:
    """A running server with keys of its own; its address is `running.address`."""
    keys = SealKeys("scripted", {"scripted": new_key()})
    shuffler = ScriptedShuffler(script, keys, ReceiptKeys.generate("scripted"))
    async with serving(settings, _registering(shuffler)) as running:
        yield running


def start(arguments: Sequence[str]) -> NoReturn:
    """A process of its own with the script in the file that the first argument names."""
    settings = load(ShufflerSettings)
    shuffler = ScriptedShuffler(
        Script.load(Path(arguments[0])),
        SealKeys.load(settings.shuffler_seal_keys_file),
        ReceiptKeys.load(settings.shuffler_receipt_keys_file),
    )
    main(run(settings, _registering(shuffler)))


def _registering(shuffler: ScriptedShuffler) -> Register:
    async def register(server: aio.Server) -> list[str]:
        shuffler_pb2_grpc.add_ShufflerServiceServicer_to_server(shuffler, server)
        return [SERVICE_NAME]

    return register


def _scripted(entry: Mapping[str, str]) -> ScriptedDeck:
    return ScriptedDeck(deck_of(entry["cards"]), parse_cards(entry.get("reshuffled", "")))


if __name__ == "__main__":
    start(sys.argv[1:])
