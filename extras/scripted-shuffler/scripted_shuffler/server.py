"""The shuffler's contract, with decks from a script.

Every deck says so (DECK_SOURCE_SCRIPTED), which a table accepts for play money (XTS) only. Hands
without a script of their own get a fresh kernel deck, marked as scripted all the same.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from doorcard.shuffler.v1 import shuffler_pb2 as pb
from doorcard.shuffler.v1 import shuffler_pb2_grpc
from grpc import aio

from scripted_shuffler.script import Script
from services.runtime.clock import now_ms
from services.runtime.sealing import SealKeys, new_key
from services.runtime.server import Register, Running, serving
from services.runtime.settings import ServiceSettings
from services.shuffler.commitment import Commitment
from services.shuffler.deck import Deck, fresh_deck
from services.shuffler.generator import KernelGenerator
from services.shuffler.receipts import HandContext, ReceiptKeys, deck_statement, reshuffle_statement
from services.shuffler.server import SERVICE_NAME, Context, ShufflerServicer


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
        commitment = Commitment(deck)
        root, size = commitment.root, len(deck.cards)
        statement = deck_statement(hand, root, source="scripted", size=size, at_ms=now_ms())
        return pb.CreateDeckResponse(
            sealed_deck=self._sealed(deck, hand),
            root=root,
            receipt=self._signed(statement),
            source=pb.DECK_SOURCE_SCRIPTED,
            size=size,
            leaves=commitment.leaves,
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
        commitment = Commitment(deck)
        root = commitment.root
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
            leaves=commitment.leaves,
        )


@asynccontextmanager
async def scripted_shuffler(settings: ServiceSettings, script: Script) -> AsyncIterator[Running]:
    """A running server with keys of its own; its address is `running.address`."""
    keys = SealKeys("scripted", {"scripted": new_key()})
    shuffler = ScriptedShuffler(script, keys, ReceiptKeys.generate("scripted"))
    async with serving(settings, registering(shuffler)) as running:
        yield running


def registering(shuffler: ScriptedShuffler) -> Register:
    """Adds the service to a server."""

    async def register(server: aio.Server) -> list[str]:
        shuffler_pb2_grpc.add_ShufflerServiceServicer_to_server(shuffler, server)
        return [SERVICE_NAME]

    return register
