"""What the wallet does beside answering: it seals what was written and audits it, round and round.

Several wallets may run: whoever comes first seals, the others pass; the audits go on from where the
last one stopped, whoever did it. All of it works in bounded pieces.
"""

import asyncio
import random
from typing import Final

import psycopg
from prometheus_client import Counter, Gauge

from services.runtime.clock import monotonic_s
from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.runtime.metrics import REGISTRY
from services.runtime.postgres import Database
from services.wallet.ledger import audit, seals, verify
from services.wallet.ledger.seals import Horizon, Seal
from services.wallet.opening import LedgerDatabase

SEALS_IN_A_ROW: Final = 20
"""Before the audits get their turn."""
SEALS_CHECKED: Final = 2
"""Old ones, in each round."""
HEAD_LOGGED_S: Final = 60.0
"""The latest hash goes into the log this often, where the ledger's owner cannot change it."""
JITTER: Final = 0.2

SEALED: Final = Counter(
    "doorcard_ledger_sealed_rows", "Rows taken into the hash chain.", registry=REGISTRY
)
UNSEALED: Final = Gauge(
    "doorcard_ledger_unsealed_entries",
    "Entries of the journal after the last seal, up to 100,000; grows when sealing stands still.",
    registry=REGISTRY,
)
CHAIN_FAULTS: Final = Gauge(
    "doorcard_ledger_chain_faults",
    "Rows found to be not as they were sealed, since this wallet started; 0 is well.",
    registry=REGISTRY,
)
BALANCE_FAULTS: Final = Gauge(
    "doorcard_ledger_balance_faults",
    "Accounts whose balance is not the sum of their transfers; 0 is well.",
    registry=REGISTRY,
)
FAILURES: Final = Counter(
    "doorcard_ledger_upkeep_failures",
    "Rounds of upkeep that failed, by kind; the next one tries again.",
    ["kind"],
    registry=REGISTRY,
)


class Upkeep:
    """Seals and audits for the life of the wallet.

    every_s: between two rounds. time_zone: IANA name, of the room's days.
    """

    def __init__(self, ledger: LedgerDatabase, *, every_s: float, time_zone: str) -> None:
        self._ledger = ledger
        self._every_s = every_s
        self._time_zone = time_zone
        self._horizon: Horizon | None = None
        self._head_logged_s = 0.0
        self._faulty: set[verify.Finding] = set()

    async def run(self) -> None:
        """Round after round until it is cancelled; one that fails is made up for by the next."""
        database = await self._ledger.wait_until_open()
        while True:
            try:
                await self.round(database)
            except (DoorcardError, psycopg.Error) as error:
                FAILURES.labels(type(error).__name__).inc()
                logger.warning("upkeep_failed", kind=type(error).__name__)
            await asyncio.sleep(self._every_s * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311 (jitter)

    async def round(self, database: Database) -> None:
        """Seal what is ready, audit the next accounts, check the next seals."""
        await self._seal(database)
        await audit.go_on(database)
        BALANCE_FAULTS.set(await audit.known(database))
        for finding in await verify.next_seals(database, SEALS_CHECKED):
            if finding not in self._faulty:
                self._faulty.add(finding)
                logger.error("ledger_tampered", row=finding.row, seal=finding.seal)
        CHAIN_FAULTS.set(len(self._faulty))

    async def _seal(self, database: Database) -> None:
        """Seal up to where the ledger was in an earlier round: by now all of that is there, unless
        a transaction of then is still running.
        """
        if self._horizon is not None and await seals.reached(database, self._horizon):
            for _ in range(SEALS_IN_A_ROW):
                made = await seals.seal(database, self._horizon, self._time_zone)
                if made is None:
                    self._horizon = None
                    break
                self._tell(made)
        UNSEALED.set(await seals.unsealed(database))
        if self._horizon is None:
            self._horizon = await seals.horizon(database)

    def _tell(self, made: Seal) -> None:
        SEALED.inc(made.rows)
        if monotonic_s() - self._head_logged_s >= HEAD_LOGGED_S:
            self._head_logged_s = monotonic_s()
            logger.info("ledger_sealed", seal=made.number, hash=made.hash.hex())
