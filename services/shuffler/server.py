"""The shuffler's contract over gRPC: requests in, decks out."""

from collections.abc import Sequence
from typing import Any, Final

from doorcard.shuffler.v1 import shuffler_pb2 as pb
from doorcard.shuffler.v1 import shuffler_pb2_grpc
from grpc import aio
from prometheus_client import Counter

from services.runtime.auth import current_caller
from services.runtime.batches import Answering, Batch
from services.runtime.clock import now_ms
from services.runtime.errors import InvalidArgument, Unavailable
from services.runtime.ids import NAME_RULE, check_request_id, is_name
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.runtime.sealing import SealBroken, SealKeys
from services.shuffler import receipts
from services.shuffler.commitment import Opened, Roots
from services.shuffler.deck import Deck, fresh_deck
from services.shuffler.generator import KernelGenerator, RngUnhealthy
from services.shuffler.receipts import HandContext, Receipt, ReceiptKeys
from services.shuffler.seal import open_deck, seal_deck

SERVICE_NAME: Final = pb.DESCRIPTOR.services_by_name["ShufflerService"].full_name
SOURCE: Final = "kernel"
KEYS_PAGE: Final = 100
RETRY_AFTER_MS: Final = 1000

DECKS: Final = Counter(
    "doorcard_decks", "Decks made, fresh or reshuffled.", ["kind"], registry=REGISTRY
)
OPENED: Final = Counter("doorcard_cards_opened", "Positions opened by Draw.", registry=REGISTRY)

Context = aio.ServicerContext[Any, Any]

_BATCH: Final = Answering(Batch(pb.DESCRIPTOR.services_by_name["ShufflerService"], "BatchDeal"))


class ShufflerServicer(shuffler_pb2_grpc.ShufflerServiceServicer):
    """ShufflerService. Every log line and receipt names positions and roots, never a card."""

    def __init__(
        self, seal_keys: SealKeys, receipt_keys: ReceiptKeys, generator: KernelGenerator
    ) -> None:
        self._seal_keys = seal_keys
        self._receipt_keys = receipt_keys
        self._generator = generator
        self._roots = Roots()

    def test_generator(self) -> None:
        """The health tests of the start; a failure is logged, and nothing is dealt."""
        try:
            self._generator.test_at_start()
        except RngUnhealthy as failed:
            logger.error("rng_unhealthy", test=failed.test)

    async def CreateDeck(  # noqa: N802 (the contract's name)
        self, request: pb.CreateDeckRequest, _context: Context
    ) -> pb.CreateDeckResponse:
        check_request_id(request.request_id)
        hand = _hand(request.table_id, request.hand_id)
        self._require_healthy()
        try:
            deck = fresh_deck(self._generator)
        except RngUnhealthy as failed:
            raise _unhealthy(failed) from failed
        sealed = self._sealed(deck, hand)
        commitment = self._roots.commitment(sealed, deck)
        root = commitment.root
        statement = receipts.deck_statement(
            hand, root, source=SOURCE, size=len(deck.cards), at_ms=now_ms()
        )
        DECKS.labels("fresh").inc()
        _log("deck_created", hand, root)
        return pb.CreateDeckResponse(
            sealed_deck=sealed,
            root=root,
            receipt=self._signed(statement),
            source=pb.DECK_SOURCE_KERNEL,
            size=len(deck.cards),
            leaves=commitment.leaves,
        )

    async def Draw(  # noqa: N802
        self, request: pb.DrawRequest, _context: Context
    ) -> pb.DrawResponse:
        hand = _hand(request.table_id, request.hand_id)
        self._require_healthy()
        deck = self._opened(request.sealed_deck, hand)
        positions = _positions(request.positions, len(deck.cards))
        commitment = self._roots.commitment(request.sealed_deck, deck)
        statement = receipts.draw_statement(hand, commitment.root, positions, at_ms=now_ms())
        OPENED.inc(len(positions))
        _log("deck_drawn", hand, commitment.root, positions=positions)
        with_path = not request.without_paths
        return pb.DrawResponse(
            cards=[_drawn(commitment.open(each, with_path=with_path)) for each in positions],
            root=commitment.root,
            receipt=self._signed(statement),
        )

    async def Reshuffle(  # noqa: N802
        self, request: pb.ReshuffleRequest, _context: Context
    ) -> pb.ReshuffleResponse:
        hand = _hand(request.table_id, request.hand_id)
        self._require_healthy()
        deck = self._opened(request.sealed_deck, hand)
        positions = _positions(request.positions, len(deck.cards))
        old_root = self._roots.commitment(request.sealed_deck, deck).root
        reshuffled = deck.reshuffled(positions)
        sealed = self._sealed(reshuffled, hand)
        commitment = self._roots.commitment(sealed, reshuffled)
        root = commitment.root
        statement = receipts.reshuffle_statement(
            hand, root, old_root=old_root, positions=positions, at_ms=now_ms()
        )
        DECKS.labels("reshuffled").inc()
        _log("deck_reshuffled", hand, root, old_root=old_root.hex(), positions=sorted(positions))
        return pb.ReshuffleResponse(
            sealed_deck=sealed,
            root=root,
            receipt=self._signed(statement),
            size=len(reshuffled.cards),
            leaves=commitment.leaves,
        )

    async def BatchDeal(  # noqa: N802
        self, request: pb.BatchDealRequest, context: Context
    ) -> pb.BatchDealResponse:
        response: pb.BatchDealResponse = await _BATCH.answer(self, request, context)
        return response

    async def ListReceiptKeys(  # noqa: N802
        self, request: pb.ListReceiptKeysRequest, _context: Context
    ) -> pb.ListReceiptKeysResponse:
        keys = self._receipt_keys.public_keys()
        start, length = _page(request.page_token, request.page_size, len(keys))
        page = keys[start : start + length]
        more = start + length < len(keys)
        return pb.ListReceiptKeysResponse(
            keys=[pb.ReceiptKey(key_id=key_id, public_key=key) for key_id, key in page],
            next_page_token=str(start + length) if more else "",
        )

    def _require_healthy(self) -> None:
        # Decks made shortly before a failure are as suspect as the next: nothing is dealt at all.
        try:
            self._generator.require_healthy()
        except RngUnhealthy as failed:
            raise _unhealthy(failed) from failed

    def _opened(self, sealed: bytes, hand: HandContext) -> Deck:
        try:
            return open_deck(self._seal_keys, sealed, table_id=hand.table_id, hand_id=hand.hand_id)
        except SealBroken as broken:
            raise InvalidArgument.of_field(
                "sealed_deck",
                "does not open: changed, made for another hand or table, or under an unknown key",
                "SEALED_DECK_BROKEN",
            ) from broken

    def _sealed(self, deck: Deck, hand: HandContext) -> bytes:
        return seal_deck(self._seal_keys, deck, table_id=hand.table_id, hand_id=hand.hand_id)

    def _signed(self, statement: bytes) -> pb.Receipt:
        receipt: Receipt = self._receipt_keys.sign(statement)
        return pb.Receipt(
            key_id=receipt.key_id, statement=receipt.statement, signature=receipt.signature
        )


def _hand(table_id: str, hand_id: str) -> HandContext:
    for field, value in (("table_id", table_id), ("hand_id", hand_id)):
        if not is_name(value):
            raise InvalidArgument.of_field(field, f"must be {NAME_RULE}")
    return HandContext(table_id, hand_id)


def _positions(positions: Sequence[int], size: int) -> list[int]:
    """The positions, in the order asked for. Raises InvalidArgument."""

    def refuse(reason: str, description: str) -> InvalidArgument:
        return InvalidArgument.of_field("positions", description, reason)

    if not positions:
        raise refuse("NO_POSITIONS", "at least one is needed")
    if len(positions) > size:
        raise refuse("TOO_MANY_POSITIONS", f"the deck has {size} cards")
    if not all(0 <= position < size for position in positions):
        raise refuse("POSITION_OUT_OF_RANGE", f"each is 0 to {size - 1}")
    if len(set(positions)) != len(positions):
        raise refuse("POSITION_TWICE", "no position twice")
    return list(positions)


def _page(token: str, size: int, total: int) -> tuple[int, int]:
    if size < 0:
        raise InvalidArgument.of_field("page_size", "must not be negative")
    if token and not (token.isascii() and token.isdigit() and int(token) < total):
        raise InvalidArgument.of_field("page_token", "is not one of ours", "BAD_PAGE_TOKEN")
    return int(token or 0), min(size or KEYS_PAGE, KEYS_PAGE)


def _drawn(opened: Opened) -> pb.DrawnCard:
    return pb.DrawnCard(
        position=opened.position, card=opened.card, salt=opened.salt, path=opened.path
    )


def _unhealthy(failed: RngUnhealthy) -> Unavailable:
    return Unavailable("RNG_UNHEALTHY", str(failed), retry_after_ms=RETRY_AFTER_MS)


def _log(event: str, hand: HandContext, root: bytes, **facts: object) -> None:
    logger.info(
        event,
        table=hand.table_id,
        hand=hand.hand_id,
        root=root.hex(),
        caller=current_caller().subject,
        **facts,
    )
