"""Several calls of the shuffler in one message: each is answered as if it had come by itself."""

import json
from typing import Any

import pytest
from doorcard.shuffler.v1 import shuffler_pb2 as pb
from doorcard.shuffler.v1 import shuffler_pb2_grpc
from scripted_shuffler import Script, ScriptedDeck, deck_of, scripted_shuffler
from structlog.testing import capture_logs

from services.game.cards import parse_cards
from services.runtime.batches import CALLS_MAX
from services.runtime.channels import connect
from services.runtime.errors import DoorcardError, InvalidArgument, PermissionDenied
from services.runtime.logs import bound
from services.runtime.metrics import REGISTRY
from services.shuffler.server import ShufflerServicer
from services.shuffler.verify import verify_receipt
from tests.conftest import Room
from tests.contract.shuffler.test_shuffler_contract import (
    answered,
    assert_proven,
    created,
    drawn,
    reshuffled,
    shuffler_of,
)

HAND: dict[str, Any] = {"table_id": "t1", "hand_id": "h1"}


def draw(sealed: bytes, *positions: int, trace: str = "", **hand: str) -> pb.DealCall:
    fields = {**HAND, **hand}
    return pb.DealCall(
        trace=trace, draw=pb.DrawRequest(sealed_deck=sealed, positions=positions, **fields)
    )


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def handled(method: str, code: str) -> float:
    return counted(
        "grpc_server_handled_total",
        grpc_type="batched",
        grpc_service="doorcard.shuffler.v1.ShufflerService",
        grpc_method=method,
        grpc_code=code,
    )


async def test_decks_draws_and_reshuffles_are_answered_in_order(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        deck = await created(shuffler)
        calls = [
            draw(deck.sealed_deck, 3, 1),
            pb.DealCall(create_deck=pb.CreateDeckRequest(request_id="r", **HAND)),
            pb.DealCall(
                reshuffle=pb.ReshuffleRequest(
                    sealed_deck=deck.sealed_deck, positions=[5, 9, 7], **HAND
                )
            ),
            draw(deck.sealed_deck, 0),
        ]
        answer = await answered(shuffler.BatchDeal, pb.BatchDealRequest(calls=calls))
        first, made, mixed, second = answer.answers
        assert_proven(first.draw, deck.root)
        assert [card.position for card in first.draw.cards] == [3, 1]
        assert first.draw.cards == (await drawn(shuffler, deck.sealed_deck, [3, 1])).cards
        assert [card.position for card in second.draw.cards] == [0]
        alone = await reshuffled(shuffler, deck.sealed_deck, [5, 9, 7])
        assert (mixed.reshuffle.root, mixed.reshuffle.size) == (alone.root, 3)
        new = made.create_deck
        assert new.source == pb.DECK_SOURCE_KERNEL
        assert_proven(await drawn(shuffler, new.sealed_deck, range(52)), new.root)
        assert new.root != deck.root

        keys = await answered(shuffler.ListReceiptKeys, pb.ListReceiptKeysRequest())
        public_keys = {key.key_id: key.public_key for key in keys.keys}
        for receipt, statement in (
            (first.draw.receipt, "draw"),
            (new.receipt, "deck"),
            (mixed.reshuffle.receipt, "reshuffle"),
            (second.draw.receipt, "draw"),
        ):
            assert verify_receipt(
                public_key=public_keys[receipt.key_id],
                statement=receipt.statement,
                signature=receipt.signature,
            )
            assert json.loads(receipt.statement)["statement"] == statement


async def test_bad_calls_are_errors_of_their_own_as_the_call_by_itself_has_them(
    room: Room,
) -> None:
    async with shuffler_of(room) as shuffler:
        deck = await created(shuffler)
        request = pb.BatchDealRequest(
            calls=[
                draw(deck.sealed_deck, 1),
                draw(deck.sealed_deck, 52),
                draw(deck.sealed_deck, 1, hand_id="h2"),
                pb.DealCall(create_deck=pb.CreateDeckRequest(**HAND)),
                pb.DealCall(),
                draw(deck.sealed_deck, 2),
            ]
        )
        answers = (await answered(shuffler.BatchDeal, request)).answers
        assert [each.WhichOneof("answer") for each in answers] == [
            "draw",
            *["error"] * 4,
            "draw",
        ]
        errors = [DoorcardError.from_wire(each.error) for each in answers[1:5]]
        assert all(type(error) is InvalidArgument for error in errors)
        assert [error.reason for error in errors[:2]] == [
            "POSITION_OUT_OF_RANGE",
            "SEALED_DECK_BROKEN",
        ]
        assert [error.violations[0][0] for error in errors] == [
            "positions",
            "sealed_deck",
            "request_id",
            "call",
        ]
        with pytest.raises(InvalidArgument) as alone:
            await answered(shuffler.Draw, request.calls[1].draw)
        assert alone.value.to_rich_status().SerializeToString() == answers[1].error


@pytest.mark.parametrize("count", [0, CALLS_MAX + 1])
async def test_none_or_too_many_calls_are_refused_by_the_fields_name(
    room: Room, count: int
) -> None:
    async with shuffler_of(room) as shuffler:
        with pytest.raises(InvalidArgument) as refused:
            await answered(shuffler.BatchDeal, pb.BatchDealRequest(calls=[draw(b"", 0)] * count))
        assert [field for field, _ in refused.value.violations] == ["calls"]


async def test_as_many_calls_as_are_allowed_for_whole_decks_fit_in_one_answer(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        deck = await created(shuffler)
        request = pb.BatchDealRequest(calls=[draw(deck.sealed_deck, *range(52))] * CALLS_MAX)
        answer = await answered(shuffler.BatchDeal, request)
        assert [len(each.draw.cards) for each in answer.answers] == [52] * CALLS_MAX
        assert answer.ByteSize() < 1024 * 1024


async def test_calls_are_logged_and_counted_like_calls_by_themselves(room: Room) -> None:
    async with shuffler_of(room) as shuffler:
        deck = await created(shuffler)
        ok, bad = handled("Draw", "OK"), handled("Draw", "INVALID_ARGUMENT")
        opened = counted("doorcard_cards_opened_total")
        request = pb.BatchDealRequest(
            calls=[
                draw(deck.sealed_deck, 4, 2, trace="a" * 32),
                draw(b"?", 1, trace="b" * 32),
                draw(deck.sealed_deck, 7, trace="no trace\nat all"),
            ]
        )
        with capture_logs(processors=[_with_ids]) as lines:
            await answered(shuffler.BatchDeal, request)
        assert handled("Draw", "OK") - ok == 2
        assert handled("Draw", "INVALID_ARGUMENT") - bad == 1
        assert counted("doorcard_cards_opened_total") - opened == 3
    first, refused, last = [
        line for line in lines if line["event"] in ("deck_drawn", "call_refused")
    ]
    assert (first["positions"], first["caller"], first["trace"]) == ([4, 2], "table-1", "a" * 32)
    assert refused["method"] == "/doorcard.shuffler.v1.ShufflerService/Draw"
    assert (refused["reason"], refused["trace"]) == ("SEALED_DECK_BROKEN", "b" * 32)
    # A trace that is none is that of the message.
    assert last["positions"] == [7]
    assert len(last["trace"]) == 32
    assert last["trace"] not in ("a" * 32, "b" * 32)


def _with_ids(_logger: Any, _name: str, event: Any) -> Any:
    return {**bound(), **event}


async def test_a_fault_in_one_call_tells_nothing_and_touches_no_other(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ShufflerServicer.Draw

    async def faulty(self: ShufflerServicer, request: pb.DrawRequest, context: Any) -> Any:
        if list(request.positions) == [1]:
            raise ValueError("the ace of spades")
        return await whole(self, request, context)

    monkeypatch.setattr(ShufflerServicer, "Draw", faulty)
    async with shuffler_of(room) as shuffler:
        deck = await created(shuffler)
        before = handled("Draw", "INTERNAL")
        calls = [draw(deck.sealed_deck, 1), draw(deck.sealed_deck, 2)]
        answer = await answered(shuffler.BatchDeal, pb.BatchDealRequest(calls=calls))
        error = DoorcardError.from_wire(answer.answers[0].error)
        assert (error.reason, error.message) == ("INTERNAL", "internal error")
        assert len(answer.answers[1].draw.cards) == 1
        assert handled("Draw", "INTERNAL") - before == 1


@pytest.mark.parametrize("roles", [("player",), ("operator",), ("auditor",)])
async def test_only_services_may_send_them(room: Room, roles: tuple[str, ...]) -> None:
    async with shuffler_of(room, "someone", roles) as shuffler:
        with pytest.raises(PermissionDenied):
            await answered(shuffler.BatchDeal, pb.BatchDealRequest(calls=[draw(b"", 0)]))


async def test_the_scripted_shuffler_deals_its_script_in_a_message_too(room: Room) -> None:
    script = Script({"t1": [ScriptedDeck(deck_of("AsKdQh"), parse_cards("KdAsQh"))]})
    settings = room.settings(token_file=room.token_file("table-1", ["service"]))
    async with (
        scripted_shuffler(settings, script) as running,
        connect(running.address, settings) as channel,
    ):
        stub: Any = shuffler_pb2_grpc.ShufflerServiceStub(channel)
        create = pb.DealCall(create_deck=pb.CreateDeckRequest(request_id="r", **HAND))
        answer = await answered(stub.BatchDeal, pb.BatchDealRequest(calls=[create]))
        deck = answer.answers[0].create_deck
        assert deck.source == pb.DECK_SOURCE_SCRIPTED
        request = pb.BatchDealRequest(calls=[draw(deck.sealed_deck, 0, 1, 2)])
        answer = await answered(stub.BatchDeal, request)
        assert [card.card for card in answer.answers[0].draw.cards] == ["As", "Kd", "Qh"]
