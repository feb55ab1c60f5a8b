"""Estimates of equity over gRPC: progress, precision, deadlines, cancellation, bounds."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from math import comb
from pathlib import Path
from typing import Any

import grpc
import pytest
from doorcard.game.v1 import game_pb2
from doorcard.showdown.v1 import showdown_pb2 as pb
from structlog.testing import capture_logs

from services.game.cards import parse_cards
from services.game.rulebook import Game
from services.runtime.errors import (
    DoorcardError,
    InvalidArgument,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
)
from services.showdown import asking, server
from services.showdown.analysts import Analysts
from services.showdown.equity import Estimation, Spot
from tests.conftest import Room
from tests.contract.showdown.showdowns import Stub, names, showdown_of

FIFTH = ("AsAhKd2c3c", "7c8c9cTd2h")
FOURTH = ("AsAhKd2c", "7c8c9cTd")
ENDLESS: dict[str, Any] = {"hands": [""] * 8, "standard_error_max": 0.0001}
"""A sample of some ten million deals."""
LEAVING_S = 30


def asked(hands: Sequence[str] = FIFTH, **fields: Any) -> pb.EstimateEquityRequest:
    settings: dict[str, Any] = {
        "game": game_pb2.GAME_HI_LO,
        "players": [pb.KnownHand(cards=names(hand)) for hand in hands],
    }
    return pb.EstimateEquityRequest(**{**settings, **fields})


async def estimated(
    showdown: Stub, request: pb.EstimateEquityRequest, timeout_s: float = 60
) -> list[pb.EstimateEquityResponse]:
    """Every answer, or the typed error."""
    try:
        return [answer async for answer in showdown.EstimateEquity(request, timeout=timeout_s)]
    except grpc.RpcError as error:
        raise DoorcardError.from_rpc(error) from None


def here(hands: Sequence[str], game: Game, **settings: Any) -> Estimation:
    """The same without a service."""
    spot = Spot(game, tuple(parse_cards(hand) for hand in hands))
    usual = {"exact_deals_max": 5_000_000, "standard_error_max": 0.002, "seed": 1}
    estimation = Estimation(spot, **{**usual, **settings})
    while part := estimation.next_part():
        estimation.add(part())
    return estimation


async def test_what_fits_the_budget_is_exact_and_what_does_not_is_a_precise_sample(
    room: Room,
) -> None:
    async with showdown_of(room) as showdown:
        exact = (await estimated(showdown, asked()))[-1]
        truth = here(FIFTH, Game.HI_LO)
        assert (exact.exact, exact.done, exact.precise, exact.progress) == (True, True, True, 1)
        assert exact.deals == exact.deals_total == truth.deals
        for player, worth in zip(exact.players, truth.worths(), strict=True):
            assert {field.name: value for field, value in player.ListFields()} == {
                name: value for name, value in worth._asdict().items() if value
            }

        request = asked(exact_deals_max=1000, standard_error_max=0.001, seed=7)
        sample = (await estimated(showdown, request))[-1]
        same = here(FIFTH, Game.HI_LO, exact_deals_max=1000, standard_error_max=0.001, seed=7)
        assert (sample.exact, sample.done, sample.precise, sample.seed) == (False, True, True, 7)
        assert (sample.deals, sample.deals_total) == (same.deals, 0)
        assert [player.equity for player in sample.players] == [
            worth.equity for worth in same.worths()
        ]
        assert all(0 < player.standard_error <= 0.001 for player in sample.players)
        # A seed of the server's own choice is told, so that the sample can be had again.
        other = (await estimated(showdown, asked(exact_deals_max=-1)))[-1]
        assert other.seed > 0


async def test_progress_rises_to_the_end_and_incomplete_enumerations_tell_no_figures(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PROGRESS_SECONDS", 0.0)
    async with showdown_of(room) as showdown:
        dead = names("2h3h4h5h6h2s3s4s5s6s")
        request = asked(FOURTH, exact_deals_max=200_000_000, dead_cards=dead)
        *before, last = await estimated(showdown, request)
        assert before
        assert all(not answer.done and not answer.players for answer in before)
        progress = [answer.progress for answer in (*before, last)]
        assert progress == sorted(progress)
        assert progress[-1] == 1
        assert last.deals == last.deals_total == comb(34, 3) * comb(31, 3)
        assert sum(player.equity for player in last.players) == pytest.approx(1)


async def test_a_deadline_ends_a_sample_with_what_it_has_and_an_enumeration_with_an_error(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "STANDARD_ERROR_MIN", 1e-7)  # No machine gets there in time.
    async with showdown_of(room) as showdown:
        await estimated(showdown, asked())  # The analysts are there.
        *_, last = await estimated(showdown, asked([""] * 8, standard_error_max=1e-7), timeout_s=4)
        assert last.done
        assert not last.precise
        assert 0 < last.progress < 1
        assert last.players[0].standard_error > 1e-7
        with pytest.raises(DoorcardError) as late:
            await estimated(showdown, asked(FOURTH, exact_deals_max=200_000_000), timeout_s=0.5)
        assert late.value.code is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_one_more_is_told_to_come_again_and_cancellation_makes_room(room: Room) -> None:
    async with showdown_of(room, analyses_max=1) as showdown:
        running = showdown.EstimateEquity(asked(**ENDLESS))
        first = await anext(aiter(running))
        assert (first.done, first.precise) == (False, False)
        with pytest.raises(ResourceExhausted) as refused:
            await estimated(showdown, asked())
        assert refused.value.reason == "TOO_MANY_ANALYSES"
        assert refused.value.retry_after_ms
        running.cancel()
        assert (await admitted(showdown, asked()))[-1].done


async def admitted(
    showdown: Stub, request: pb.EstimateEquityRequest
) -> list[pb.EstimateEquityResponse]:
    """Asks again until there is room."""
    async with asyncio.timeout(LEAVING_S):
        while True:
            try:
                return await estimated(showdown, request)
            except ResourceExhausted:
                continue


@pytest.mark.parametrize(
    ("fields", "places"),
    [
        ({"game": 0}, ["game"]),
        ({"wild_deuces": True}, ["wild_deuces"]),
        ({"exact_deals_max": 10**9}, ["exact_deals_max"]),
        ({"standard_error_max": 0.5}, ["standard_error_max"]),
        ({"standard_error_max": -1}, ["standard_error_max"]),
        ({"standard_error_max": float("nan")}, ["standard_error_max"]),
        ({"hands": ["AsAh"]}, ["players"]),
        ({"hands": [""] * 9}, ["players"]),
        ({"hands": ["AsAh", "KsAs"]}, ["players[1].cards[1]"]),
        ({"hands": ["AsA?", "Ks1s"]}, ["players[0].cards[1]", "players[1].cards[1]"]),
        ({"hands": ["2s3s4s5s6s7s8s9s", ""]}, ["players[0].cards"]),
        ({"hands": ["2s3s4s5s6s7s8s", ""], "community": "Ah"}, ["players[0].cards"]),
        ({"dead_cards": ["As", "Kd", "Qd", "Qd"]}, [f"dead_cards[{at}]" for at in (0, 1, 3)]),
        ({"dead_cards": ["2s"] * 53}, ["dead_cards"]),
        ({"community": "As"}, ["players[0].cards[0]"]),
        ({"community": "xx"}, ["community"]),
        (
            {"hands": ["2s3s4s5s6s7s8s", *[""] * 7]},
            ["players"],
        ),
    ],
)
async def test_malformed_requests_are_refused_with_field_and_index_and_without_cards(
    room: Room, fields: dict[str, Any], places: list[str]
) -> None:
    async with showdown_of(room) as showdown:
        with pytest.raises(InvalidArgument) as refused, capture_logs() as logs:
            await estimated(showdown, asked(**fields))
        assert [field for field, _ in refused.value.violations] == places
        told = f"{refused.value} {refused.value.violations} {logs}"
        assert not any(card in told for card in ("As", "Ks", "2s", "Qd"))


async def test_players_may_not_ask(room: Room) -> None:
    async with showdown_of(room, ["player"]) as showdown:
        with pytest.raises(PermissionDenied):
            await estimated(showdown, asked())


async def test_a_process_that_dies_is_replaced(tmp_path: Path) -> None:
    analysts = Analysts(1, 1, tmp_path / "no" / "matter")
    try:
        with pytest.raises(Unavailable) as lost:
            await analysts.do(partial(os._exit, 1))
        assert lost.value.reason == "ANALYST_LOST"
        assert await analysts.do(os.getpid) != os.getpid()
    finally:
        await analysts.close()


def test_analysts_end_with_their_parent_even_when_it_is_killed(tmp_path: Path) -> None:
    code = (
        "import asyncio, os, pathlib, sys, time\n"
        "from services.showdown.analysts import Analysts\n"
        "async def main():\n"
        "    analysts = Analysts(1, 1, pathlib.Path(sys.argv[1]))\n"
        "    print(await analysts.do(os.getpid), flush=True)\n"
        "    await analysts.do(__import__('functools').partial(time.sleep, 600))\n"
        "asyncio.run(main())\n"
    )
    script = tmp_path / "parent.py"
    script.write_text(f"if __name__ == '__main__':\n    exec({code!r})\n")
    command = [sys.executable, str(script), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        analyst = int(parent.stdout.readline())
        # Readable when the process has ended, whoever its parent is by then.
        ended = os.pidfd_open(analyst)
        parent.send_signal(signal.SIGKILL)
    readable, _, _ = select.select([ended], [], [], LEAVING_S)
    os.close(ended)
    assert readable
