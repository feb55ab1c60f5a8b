"""PostgreSQL 15, the oldest version that a room may have, does everything that the ledger asks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from doorcard.wallet.v1 import wallet_pb2 as pb

from services.runtime.schema import upgrade
from services.wallet.opening import MIGRATIONS
from tests import postgres
from tests.contract.wallet.conftest import Start, two_seats
from tests.contract.wallet.test_rake_reports import DAY, PLAYER, hand, lines

OLDEST = Path("/usr/lib/postgresql/15/bin")

pytestmark = pytest.mark.skipif(
    not (OLDEST / "postgres").exists(), reason=f"no PostgreSQL 15 in {OLDEST}"
)


@pytest.fixture
def oldest_url() -> Iterator[str]:
    """A ledger on PostgreSQL 15."""
    with postgres.running(OLDEST) as cluster:
        url = cluster.create()
        upgrade(url, MIGRATIONS)
        yield url
        cluster.drop(url)


async def test_the_whole_life_of_money(start: Start, oldest_url: str) -> None:
    async with start(oldest_url) as wallet:
        assert wallet.sql("SHOW server_version_num")[0][0].startswith("15")
        outbox, anna, ben = await two_seats(wallet)
        hand(outbox, {anna: 30, ben: 30}, ben, 3, "2026-03-28T22:30:00")
        outbox.hand({anna: -500, ben: 500})
        assert len((await wallet.apply(outbox.entries)).parked) == 1
        await wallet.adjust(430, "goodwill", sitting_id=anna)
        assert len((await wallet.retry()).applied) == 1
        deposit = await wallet.deposit("carl", 50)
        await wallet.reverse(deposit.transfer_id)
        await wallet.close("carl")
        escrow = (await wallet.open_epoch(1)).escrow
        assert len((await wallet.pay_back(escrow, epoch=2)).paid_sitting_ids) == 1
        await wallet.upkeep()
        assert await wallet.faults() == []
        assert [each.rake for each in await lines(wallet, DAY)] == [3]
        assert len(await lines(wallet, PLAYER)) == 2
        request = pb.ListTransfersRequest()
        request.since.FromSeconds(1)
        request.until.FromSeconds(2**33)
        found = await wallet.statement(
            "ben", kinds=[pb.TRANSFER_KIND_PAYBACK], since=request.since, until=request.until
        )
        assert [each.amount for each in found.transfers] == [627]
        await wallet.sound()
