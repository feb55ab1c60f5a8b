"""What a caller of the shuffler can rely on, over gRPC."""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from doorcard.shuffler.v1 import shuffler_pb2 as pb
from doorcard.shuffler.v1 import shuffler_pb2_grpc
from grpc import aio
from structlog.testing import capture_logs

from services.runtime.channels import call, connect
from services.runtime.errors import (
    DoorcardError,
    InvalidArgument,
    PermissionDenied,
    Unauthenticated,
    Unavailable,
)
from services.runtime.sealing import SealKeys, new_key
from services.runtime.server import serving
from services.runtime.settings import ServiceSettings
from services.shuffler import generator as generator_module
from services.shuffler.generator import KernelGenerator
from services.shuffler.receipts import ReceiptKeys
from services.shuffler.server import SERVICE_NAME, ShufflerServicer
from services.shuffler.verify import verify_card, verify_dealt, verify_receipt
from tests.conftest import Room

if TYPE_CHECKING:
    Stub = shuffler_pb2_grpc.ShufflerServiceAsyncStub
else:
    Stub = shuffler_pb2_grpc.ShufflerServiceStub

Answer = TypeVar("Answer")


@asynccontextmanager
async def shuffler_of(
    room: Room, subject: str = "table-1", roles: Sequence[str] = ("service",)
) -> AsyncIterator[Stub]:
    """A running shuffler seen by a caller with these roles; none at all sends no token."""
    servicer = ShufflerServicer(
        SealKeys("room", {"deck-1": new_key()}), ReceiptKeys.generate("r1"), KernelGenerator()
    )

    async def register(server: aio.Server) -> list[str]:
        servicer.test_generator()
        shuffler_pb2_grpc.add_ShufflerServiceServicer_to_server(servicer, server)
        return [SERVICE_NAME]

    async with serving(room.settings(service="shuffler"), register) as running:
        token_file = room.token_file(subject, roles) if roles else None
        client: ServiceSettings = room.settings(token_file=token_file)
        async with connect(running.address, client) as channel:
            yield shuffler_pb2_grpc.ShufflerServiceStub(channel)


async def answered(method: Callable[..., Awaitable[Answer]], request: Any) -> Answer:
    """The answer to one call, or the typed error."""
    return await call(method, request, timeout_s=5, attempts=1)


async def created(shuffler: Stub, table: str = "t1", hand: str = "h1") -> pb.CreateDeckResponse:
    request = pb.CreateDeckRequest(request_id="r", table_id=table, hand_id=hand)
    return await answered(shuffler.CreateDeck, request)


async def drawn(
    shuffler: Stub, sealed: bytes, positions: Sequence[int], table: str = "t1", hand: str = "h1"
) -> pb.DrawResponse:
    request = pb.DrawRequest(sealed_deck=sealed, table_id=table, hand_id=hand, positions=positions)
    return await answered(shuffler.Draw, request)


async def reshuffled(
    shuffler: Stub, sealed: bytes, positions: Sequence[int]
) -> pb.ReshuffleResponse:
    request = pb.ReshuffleRequest(
        sealed_deck=sealed, table_id="t1", hand_id="h1", positions=positions
    )
    return await answered(shuffler.Reshuffle, request)


def assert_proven(answer: pb.DrawResponse, root: bytes, size: int = 52) -> None:
    assert answer.root == root
    for card in answer.cards:
        assert verify_card(
            root=root,
            position=card.position,
            card=card.card,
            salt=card.salt,
            path=list(card.path),
            size=size,
        )


async def test_a_new_deck_holds_52_cards_from_the_kernel_each_proven(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        deck = await created(shuffler)
        assert (deck.size, deck.source, len(deck.root)) == (52, pb.DECK_SOURCE_KERNEL, 32)
        answer = await drawn(shuffler, deck.sealed_deck, range(52))
        assert len({card.card for card in answer.cards}) == 52
        assert_proven(answer, deck.root)


async def test_leaves_prove_the_cards_of_a_fresh_deck_and_of_a_reshuffled_one(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        deck = await created(shuffler)
        mixed = await reshuffled(shuffler, deck.sealed_deck, [51, 3, 17, 40, 8])
        for made, size in ((deck, 52), (mixed, 5)):
            assert len(made.leaves) == 32 * size
            request = pb.DrawRequest(
                sealed_deck=made.sealed_deck,
                table_id="t1",
                hand_id="h1",
                positions=range(size),
                without_paths=True,
            )
            answer = await answered(shuffler.Draw, request)
            assert answer.root == made.root
            for card in answer.cards:
                assert not card.path
                assert verify_dealt(
                    root=made.root,
                    leaves=made.leaves,
                    position=card.position,
                    card=card.card,
                    salt=card.salt,
                )


async def test_the_same_request_again_makes_another_deck(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        first, second = await created(shuffler), await created(shuffler)
        assert first.root != second.root


async def test_draw_answers_in_the_order_asked_for_and_again_the_same(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        deck = await created(shuffler)
        first = await drawn(shuffler, deck.sealed_deck, [9, 0, 51])
        again = await drawn(shuffler, deck.sealed_deck, [9, 0, 51])
        assert [card.position for card in first.cards] == [9, 0, 51]
        assert list(again.cards) == list(first.cards)


async def test_a_reshuffle_again_is_the_same_deck_and_root(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        deck = await created(shuffler)
        first = await reshuffled(shuffler, deck.sealed_deck, [48, 49, 50, 51, 20])
        again = await reshuffled(shuffler, deck.sealed_deck, [20, 51, 50, 49, 48])
        assert (first.size, first.root) == (5, again.root)
        cards = await drawn(shuffler, first.sealed_deck, range(5))
        assert list(cards.cards) == list((await drawn(shuffler, again.sealed_deck, range(5))).cards)
        assert_proven(cards, first.root, size=5)
        before = await drawn(shuffler, deck.sealed_deck, [48, 49, 50, 51, 20])
        assert {card.card for card in cards.cards} == {card.card for card in before.cards}


async def test_receipts_are_signed_and_name_positions_never_cards(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        deck = await created(shuffler)
        draw = await drawn(shuffler, deck.sealed_deck, [3, 1])
        mixed = await reshuffled(shuffler, deck.sealed_deck, [7, 6])
        keys = (await answered(shuffler.ListReceiptKeys, pb.ListReceiptKeysRequest())).keys
        public = {key.key_id: key.public_key for key in keys}
        statements = []
        for receipt in (deck.receipt, draw.receipt, mixed.receipt):
            assert verify_receipt(
                public_key=public[receipt.key_id],
                statement=receipt.statement,
                signature=receipt.signature,
            )
            statements.append(json.loads(receipt.statement))
        assert [each["statement"] for each in statements] == ["deck", "draw", "reshuffle"]
        assert statements[1]["positions"] == [3, 1]
        assert not any(f'"{card.card}"' in draw.receipt.statement.decode() for card in draw.cards)
        assert all(each["hand_id"] == "h1" for each in statements)


async def test_every_draw_is_logged_with_its_caller_and_without_a_card(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        deck = await created(shuffler)
        with capture_logs() as lines:
            answer = await drawn(shuffler, deck.sealed_deck, [4, 2])
        [line] = [each for each in lines if each["event"] == "deck_drawn"]
        assert line["positions"] == [4, 2]
        assert (line["root"], line["caller"]) == (deck.root.hex(), "table-1")
        assert not any(f"'{card.card}'" in str(lines) for card in answer.cards)


async def assert_refused(
    attempt: Coroutine[Any, Any, Any], kind: type[DoorcardError], reason: str
) -> None:
    with pytest.raises(kind) as refused:
        await attempt
    assert refused.value.reason == reason


BAD_POSITIONS: list[tuple[list[int], str]] = [
    ([], "NO_POSITIONS"),
    ([52], "POSITION_OUT_OF_RANGE"),
    ([-1], "POSITION_OUT_OF_RANGE"),
    ([2**31 - 1], "POSITION_OUT_OF_RANGE"),
    ([1, 1], "POSITION_TWICE"),
    ([*range(52), 0], "TOO_MANY_POSITIONS"),
]


async def test_bad_positions_are_typed_errors(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        sealed = (await created(shuffler)).sealed_deck
        for positions, reason in BAD_POSITIONS:
            await assert_refused(drawn(shuffler, sealed, positions), InvalidArgument, reason)
            await assert_refused(reshuffled(shuffler, sealed, positions), InvalidArgument, reason)


async def test_a_reshuffled_deck_has_only_its_own_positions(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        deck = await created(shuffler)
        short = await reshuffled(shuffler, deck.sealed_deck, [50, 51])
        await assert_refused(
            drawn(shuffler, short.sealed_deck, [2]), InvalidArgument, "POSITION_OUT_OF_RANGE"
        )


async def test_a_deck_opens_only_for_its_hand_and_unchanged(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        sealed = (await created(shuffler)).sealed_deck
        changed = sealed[:-1] + bytes((sealed[-1] ^ 1,))
        for attempt in (
            drawn(shuffler, sealed, [0], table="t2"),
            drawn(shuffler, sealed, [0], hand="h2"),
            drawn(shuffler, changed, [0]),
            drawn(shuffler, b"", [0]),
            drawn(shuffler, os.urandom(4096), [0]),
            reshuffled(shuffler, changed, [0]),
        ):
            await assert_refused(attempt, InvalidArgument, "SEALED_DECK_BROKEN")


async def test_ids_are_required(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        for request in (
            pb.CreateDeckRequest(table_id="t", hand_id="h"),
            pb.CreateDeckRequest(request_id="r", hand_id="h"),
            pb.CreateDeckRequest(request_id="r", table_id="t"),
            pb.CreateDeckRequest(request_id="r", table_id="t", hand_id="h" * 65),
        ):
            with pytest.raises(InvalidArgument) as refused:
                await answered(shuffler.CreateDeck, request)
            assert len(refused.value.violations) == 1


async def test_a_page_that_is_not_there_is_a_typed_error(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        for page_size, page_token in ((-1, ""), (0, "x"), (0, "-1"), (0, "1"), (0, "99999999999")):
            request = pb.ListReceiptKeysRequest(page_size=page_size, page_token=page_token)
            with pytest.raises(InvalidArgument):
                await answered(shuffler.ListReceiptKeys, request)


async def test_a_failed_health_test_stops_all_dealing(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shuffler_of(room) as shuffler:
        sealed = (await created(shuffler)).sealed_deck
        with monkeypatch.context() as broken:
            broken.setattr(generator_module, "urandom", bytes)
            await assert_refused(created(shuffler), Unavailable, "RNG_UNHEALTHY")
        await assert_refused(created(shuffler), Unavailable, "RNG_UNHEALTHY")
        await assert_refused(drawn(shuffler, sealed, [0]), Unavailable, "RNG_UNHEALTHY")
        await assert_refused(reshuffled(shuffler, sealed, [0]), Unavailable, "RNG_UNHEALTHY")


async def test_a_generator_that_fails_at_start_never_deals(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator_module, "urandom", bytes)
    async with shuffler_of(room) as shuffler:
        await assert_refused(created(shuffler), Unavailable, "RNG_UNHEALTHY")


async def test_no_role_but_service_makes_or_opens_decks(room: Room) -> None:
    async with shuffler_of(room, "somebody", ("player", "operator", "auditor")) as shuffler:
        for attempt in (
            created(shuffler),
            drawn(shuffler, b"x", [0]),
            reshuffled(shuffler, b"x", [0]),
        ):
            with pytest.raises(PermissionDenied):
                await attempt
        keys = await answered(shuffler.ListReceiptKeys, pb.ListReceiptKeysRequest())
        assert keys.keys


async def test_without_a_token_nothing_is_answered(room: Room) -> None:
    async with shuffler_of(room, roles=()) as shuffler:
        with pytest.raises(Unauthenticated):
            await created(shuffler)
