"""What several ask of a service at once goes in one message, and each gets his own answer."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from doorcard.shuffler.v1 import shuffler_pb2 as pb
from grpc.aio import AioRpcError, Metadata

from services.runtime import gathering
from services.runtime.batches import CALLS_MAX, Batch
from services.runtime.errors import (
    Code,
    DeadlineExceeded,
    DoorcardError,
    Internal,
    NotFound,
    Unavailable,
)
from services.runtime.gathering import BATCH_BYTES_MAX, UNDER_WAY_MAX, WAITING_MAX, Gathered
from services.runtime.logs import bind, trace_id
from services.runtime.metrics import REGISTRY

BATCH = Batch(pb.DESCRIPTOR.services_by_name["ShufflerService"], "BatchDeal")
LONG_S = 20.0
SHORT_S = 0.01
Answer = Callable[[pb.DealCall], pb.DealAnswer]


class CallFailedError(AioRpcError):
    """A call that fails with a code."""

    def __init__(self, code: grpc.StatusCode) -> None:
        super().__init__(code, Metadata(), Metadata(), "failed by the test")


def echo(call: pb.DealCall) -> pb.DealAnswer:
    """Answers a draw with its hand as root, a new deck likewise."""
    if call.HasField("create_deck"):
        root = call.create_deck.hand_id.encode()
        return pb.DealAnswer(create_deck=pb.CreateDeckResponse(root=root))
    return pb.DealAnswer(draw=pb.DrawResponse(root=call.draw.hand_id.encode()))


class Shuffler:
    """A stub that notes what it is asked; answers wait while `shut`."""

    def __init__(self, answer: Answer = echo) -> None:
        self.messages: list[pb.BatchDealRequest] = []
        self.singles: list[tuple[str, float]] = []
        self.timeouts: list[float] = []
        self.failing: BaseException | None = None
        self.answer = answer
        self.open = asyncio.Event()
        self.open.set()

    async def BatchDeal(  # noqa: N802
        self, request: pb.BatchDealRequest, timeout: float = 0
    ) -> pb.BatchDealResponse:
        self.messages.append(request)
        self.timeouts.append(timeout)
        await self.open.wait()
        if self.failing is not None:
            raise self.failing
        return pb.BatchDealResponse(answers=[self.answer(call) for call in request.calls])

    async def Draw(  # noqa: N802
        self, request: pb.DrawRequest, timeout: float = 0, metadata: Any = ()
    ) -> pb.DrawResponse:
        self.singles.append((request.hand_id, timeout))
        await self.open.wait()
        return pb.DrawResponse(root=request.hand_id.encode())

    async def CreateDeck(  # noqa: N802
        self, request: pb.CreateDeckRequest, timeout: float = 0, metadata: Any = ()
    ) -> pb.CreateDeckResponse:
        self.singles.append((request.hand_id, timeout))
        await self.open.wait()
        return pb.CreateDeckResponse(root=request.hand_id.encode())

    async def Reshuffle(self, *_: Any) -> Any:  # noqa: N802
        raise NotImplementedError

    async def ListReceiptKeys(self, request: Any, **_: Any) -> Any:  # noqa: N802
        return request

    @property
    def sizes(self) -> list[int]:
        """Calls in each message."""
        return [len(message.calls) for message in self.messages]


def draw(hand: int | str, sealed: bytes = b"") -> pb.DrawRequest:
    return pb.DrawRequest(hand_id=str(hand), sealed_deck=sealed)


def draws(stub: Gathered, count: int, timeout: float = LONG_S) -> list[asyncio.Task[Any]]:
    return [asyncio.create_task(drawn(stub, hand, timeout)) for hand in range(count)]


async def drawn(stub: Gathered, hand: int, timeout: float = LONG_S) -> str:
    reply: pb.DrawResponse = await stub.Draw(draw(hand), timeout=timeout)
    return reply.root.decode()


async def turns(count: int = 5) -> None:
    """The loop goes round."""
    for _ in range(count):
        await asyncio.sleep(0)


async def filled(stub: Gathered) -> list[asyncio.Task[Any]]:
    """As many calls as may be under way, each by itself."""
    tasks = []
    for number in range(UNDER_WAY_MAX):
        tasks.append(asyncio.create_task(drawn(stub, -number)))
        await turns()
    return tasks


async def test_calls_of_one_tick_are_one_message_answered_each_for_itself() -> None:
    shuffler = Shuffler()
    stub = Gathered(shuffler, BATCH)
    deck = pb.CreateDeckRequest(hand_id="new")
    *roots, made = await asyncio.gather(*draws(stub, 5), stub.CreateDeck(deck, timeout=LONG_S))
    assert roots == ["0", "1", "2", "3", "4"]
    assert made == pb.CreateDeckResponse(root=b"new")
    assert shuffler.sizes == [6]
    assert shuffler.singles == []


async def test_a_call_that_finds_no_other_goes_by_its_own_method() -> None:
    shuffler = Shuffler()
    stub = Gathered(shuffler, BATCH)
    for hand in range(3):
        assert await drawn(stub, hand) == str(hand)
    assert shuffler.messages == []
    assert [hand for hand, _ in shuffler.singles] == ["0", "1", "2"]
    assert all(LONG_S - 5 < timeout <= LONG_S for _, timeout in shuffler.singles)


async def test_what_is_asked_while_messages_are_under_way_goes_together_when_one_is_back() -> None:
    shuffler = Shuffler()
    shuffler.open.clear()
    stub = Gathered(shuffler, BATCH)
    first = await filled(stub)
    later = []
    for _ in range(3):
        later += draws(stub, 4)
        await turns()
    assert (len(shuffler.singles), shuffler.sizes) == (UNDER_WAY_MAX, [])
    shuffler.open.set()
    await asyncio.gather(*first, *later)
    assert shuffler.sizes == [12]


async def test_messages_under_way_and_calls_in_each_are_bounded() -> None:
    shuffler = Shuffler()
    shuffler.open.clear()
    stub = Gathered(shuffler, BATCH)
    count = CALLS_MAX * (UNDER_WAY_MAX + 1) + 2
    tasks = draws(stub, count)
    await turns()
    assert shuffler.sizes == [CALLS_MAX] * UNDER_WAY_MAX
    shuffler.open.set()
    assert await asyncio.gather(*tasks) == [str(hand) for hand in range(count)]
    assert shuffler.sizes == [CALLS_MAX] * (UNDER_WAY_MAX + 1) + [2]


async def test_bytes_of_a_message_are_bounded() -> None:
    shuffler = Shuffler()
    stub = Gathered(shuffler, BATCH)
    third = b"x" * (BATCH_BYTES_MAX // 3 + 1)
    await asyncio.gather(*(stub.Draw(draw(n, third), timeout=LONG_S) for n in range(4)))
    assert shuffler.sizes == [2, 2]


async def test_too_many_waiting_calls_are_refused_and_may_come_again() -> None:
    shuffler = Shuffler()
    shuffler.open.clear()
    stub = Gathered(shuffler, BATCH)
    tasks = await filled(stub) + draws(stub, WAITING_MAX)
    await turns()
    with pytest.raises(Unavailable) as refused:
        await drawn(stub, 0)
    assert refused.value.reason == "CALLS_WAITING"
    assert refused.value.retriable
    assert refused.value.retry_after_ms
    shuffler.open.set()
    await asyncio.gather(*tasks)
    assert await drawn(stub, 7) == "7"


async def test_a_call_whose_time_is_over_while_it_waits_is_not_sent() -> None:
    shuffler = Shuffler()
    shuffler.open.clear()
    stub = Gathered(shuffler, BATCH)
    first = await filled(stub)
    late = draws(stub, 2, timeout=SHORT_S)
    patient = draws(stub, 2)
    for task in late:
        with pytest.raises(DeadlineExceeded):
            await task
    shuffler.open.set()
    await asyncio.gather(*first, *patient)
    assert shuffler.sizes == [2]


async def test_the_time_of_a_call_counts_from_when_it_was_asked_also_in_a_message() -> None:
    shuffler = Shuffler()
    shuffler.open.clear()
    stub = Gathered(shuffler, BATCH)
    patient = draws(stub, 1)
    short = draws(stub, 1, timeout=SHORT_S)
    with pytest.raises(DeadlineExceeded):
        await short[0]
    # The message itself has the time of whoever can wait longest.
    assert LONG_S - 5 < shuffler.timeouts[0] <= LONG_S
    shuffler.open.set()
    assert await patient[0] == "0"


async def test_one_bad_call_is_an_error_of_its_own() -> None:
    def but_one(call: pb.DealCall) -> pb.DealAnswer:
        if call.draw.hand_id != "1":
            return echo(call)
        missing = NotFound("NO_HAND", "there is none", metadata={"hand": "1"}, retry_after_ms=7)
        return pb.DealAnswer(error=missing.to_rich_status().SerializeToString())

    tasks = draws(Gathered(Shuffler(but_one), BATCH), 3)
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert answers[::2] == ["0", "2"]
    error = answers[1]
    assert isinstance(error, NotFound)
    assert (error.reason, error.metadata, error.retry_after_ms) == ("NO_HAND", {"hand": "1"}, 7)


@pytest.mark.parametrize("bad", [b"\xff\xff", b""])
async def test_an_error_that_cannot_be_read_is_an_error_all_the_same(bad: bytes) -> None:
    tasks = draws(Gathered(Shuffler(lambda _: pb.DealAnswer(error=bad)), BATCH), 2)
    for answer in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(answer, DoorcardError)


async def test_an_answer_of_another_kind_is_a_fault_of_that_call_alone() -> None:
    def wrong(call: pb.DealCall) -> pb.DealAnswer:
        deck = pb.DealAnswer(create_deck=pb.CreateDeckResponse())
        return {"0": deck, "1": pb.DealAnswer()}.get(call.draw.hand_id, echo(call))

    answers = await asyncio.gather(
        *draws(Gathered(Shuffler(wrong), BATCH), 3), return_exceptions=True
    )
    assert [getattr(answer, "reason", answer) for answer in answers] == [
        "ANSWER_DIFFERS",
        "ANSWER_DIFFERS",
        "2",
    ]


async def test_too_few_answers_are_a_fault_of_all() -> None:
    class Forgetful(Shuffler):
        async def BatchDeal(self, request: Any, timeout: float = 0) -> Any:  # noqa: N802
            answers = await super().BatchDeal(request, timeout)
            return pb.BatchDealResponse(answers=answers.answers[1:])

    tasks = draws(Gathered(Forgetful(), BATCH), 3)
    for answer in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(answer, Internal)
        assert answer.reason == "BATCH_FAILED"
        assert not answer.retriable


@pytest.mark.parametrize("code", [Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.PERMISSION_DENIED])
async def test_a_message_that_fails_fails_all_its_calls_each_with_that_error(
    code: grpc.StatusCode,
) -> None:
    shuffler = Shuffler()
    shuffler.failing = CallFailedError(code)
    stub = Gathered(shuffler, BATCH)
    errors = await asyncio.gather(*draws(stub, 3), return_exceptions=True)
    assert len(set(map(id, errors))) == 3
    for error in errors:
        assert isinstance(error, DoorcardError)
        assert error.code is code
    shuffler.failing = None
    assert await asyncio.gather(*draws(stub, 3)) == ["0", "1", "2"]


async def test_a_channel_that_is_closed_cancels_calls_and_not_those_who_asked() -> None:
    shuffler = Shuffler()
    shuffler.failing = asyncio.CancelledError()
    for error in await asyncio.gather(*draws(Gathered(shuffler, BATCH), 2), return_exceptions=True):
        assert isinstance(error, DoorcardError)
        assert error.code is Code.CANCELLED
        assert error.retriable


async def test_a_server_of_an_older_release_is_asked_one_by_one_and_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shuffler = Shuffler()
    shuffler.failing = CallFailedError(Code.UNIMPLEMENTED)
    stub = Gathered(shuffler, BATCH)
    for _ in range(2):
        assert await asyncio.gather(*draws(stub, 3)) == ["0", "1", "2"]
    assert (shuffler.sizes, len(shuffler.singles)) == ([3], 6)

    monkeypatch.setattr(gathering, "LOOK_AGAIN_S", 0.0)
    stub = Gathered(shuffler, BATCH)
    assert await asyncio.gather(*draws(stub, 3)) == ["0", "1", "2"]
    shuffler.failing = None
    assert await asyncio.gather(*draws(stub, 4)) == ["0", "1", "2", "3"]
    assert shuffler.sizes == [3, 3, 4]


async def test_whoever_gives_up_harms_nobody() -> None:
    shuffler = Shuffler()
    shuffler.open.clear()
    stub = Gathered(shuffler, BATCH)
    # By itself, before it goes and on its way; in a message; and while it waits.
    alone = asyncio.create_task(drawn(stub, 0))
    await asyncio.sleep(0)
    alone.cancel()
    under_way = await filled(stub)
    under_way.pop().cancel()
    sent = draws(stub, 3)
    await turns()
    sent.pop(1).cancel()
    waiting = draws(stub, 3)
    await turns()
    waiting.pop(0).cancel()
    await turns()
    shuffler.open.set()
    assert await asyncio.gather(*sent, *waiting) == ["0", "2", "1", "2"]
    await asyncio.gather(*under_way)
    assert shuffler.sizes == [3, 2]
    assert await asyncio.gather(*draws(stub, 2 * UNDER_WAY_MAX)) == list(
        map(str, range(2 * UNDER_WAY_MAX))
    )


async def test_every_call_of_a_message_keeps_its_own_trace_and_the_message_has_none() -> None:
    shuffler = Shuffler()
    seen: list[str] = []

    async def of_nobody(request: Any, timeout: float = 0) -> Any:
        seen.append(trace_id())
        return await Shuffler.BatchDeal(shuffler, request, timeout)

    shuffler.BatchDeal = of_nobody  # type: ignore[method-assign]
    stub = Gathered(shuffler, BATCH)

    async def traced(trace: str) -> None:
        bind(trace=trace)
        await drawn(stub, 0)

    await asyncio.gather(traced("a" * 32), traced("b" * 32))
    (message,) = shuffler.messages
    assert [call.trace for call in message.calls] == ["a" * 32, "b" * 32]
    assert seen == [""]


async def test_other_methods_and_calls_with_words_of_their_own_pass_through() -> None:
    shuffler = Shuffler()
    stub = Gathered(shuffler, BATCH)
    request = pb.ListReceiptKeysRequest(page_size=3)
    assert await stub.ListReceiptKeys(request) is request
    for _ in range(2):
        await asyncio.gather(
            *(stub.Draw(draw(n), timeout=1.0, metadata=(("a", "b"),)) for n in range(2))
        )
    assert shuffler.messages == []
    assert len(shuffler.singles) == 4


async def test_each_call_of_a_message_is_counted_as_it_ended() -> None:
    def counted(code: str) -> float:
        labels = {
            "grpc_type": "batched",
            "grpc_service": BATCH.service,
            "grpc_method": "Draw",
            "grpc_code": code,
        }
        return REGISTRY.get_sample_value("grpc_client_handled_total", labels) or 0.0

    before = {code: counted(code) for code in ("OK", "UNAVAILABLE")}
    shuffler = Shuffler()
    stub = Gathered(shuffler, BATCH)
    await asyncio.gather(*draws(stub, 3))
    shuffler.failing = CallFailedError(Code.UNAVAILABLE)
    await asyncio.gather(*draws(stub, 2), return_exceptions=True)
    assert counted("OK") - before["OK"] == 3
    assert counted("UNAVAILABLE") - before["UNAVAILABLE"] == 2


def test_a_batch_is_what_its_messages_say() -> None:
    assert BATCH.calls == {"CreateDeck": "create_deck", "Draw": "draw", "Reshuffle": "reshuffle"}
