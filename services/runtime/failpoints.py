"""Fail points: named places in the code where tests kill or halt a process.

They do nothing unless `DOORCARD_FAIL_POINTS` names a folder when the process starts, and then only
where a file of a point's name lies in it. The first process that comes by takes the file, whatever
other replicas do, and sends itself the signal that is written in it (SIGKILL for an empty one); to
its whole process group with a second word, "group". A test sees that a point was reached by the
file's absence; SIGSTOP leaves the process there until SIGCONT.
"""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

VARIABLE: Final = "DOORCARD_FAIL_POINTS"

POINTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "buy_in.asked": "table: before the wallet is asked to set a buy-in aside",
        "buy_in.answered": "table: the buy-in is set aside, the seat is not taken yet",
        "buy_in.seated": "table: the seat is committed, the player does not know it yet",
        "top_up.asked": "table: before the wallet is asked to set a top-up aside",
        "top_up.answered": "table: the top-up is set aside, the table does not have it yet",
        "top_up.held": "table: the top-up is committed, the player does not know it yet",
        "commit.made": "table: a change is made, before it is stored",
        "commit.done": "table: a change is stored, before anybody hears of it",
        "hand.rake_asked": "table: before the wallet is asked for the rake of a hand",
        "hand.rake_answered": "table: the rake is known and not stored",
        "hand.showdown_asked": "table: before the pots are divided",
        "hand.showdown_answered": "table: the pots are divided and nothing is stored",
        "hand.over": "table: the entry of a hand is made and not stored",
        "hand.settled": "table: the commit that ended a hand is stored",
        "cash_out.made": "table: a player's cash-out is made and not stored",
        "cash_out.stored": "table: the commit that took him from his seat is stored",
        "drain.read": "settlement: entries are read from an outbox",
        "drain.applied": "settlement: the ledger has applied them",
        "drain.archived": "settlement: the archive has them",
        "drain.trimmed": "settlement: the outbox was trimmed",
        "worker.begun": "settlement: a task begins",
        "worker.ended": "settlement: a task is done, its message not acknowledged",
        "worker.acknowledged": "settlement: the message of a task is acknowledged",
        "beat.due": "settlement: a trigger is due and not sent",
        "beat.sent": "settlement: a trigger is sent",
        "wallet.reserving": "wallet: a reservation is written, its transaction is open",
        "wallet.reserved": "wallet: a reservation is committed and not answered",
        "wallet.applying": "wallet: outbox entries are written, their transaction is open",
        "wallet.applied": "wallet: outbox entries are committed and not answered",
        "wallet.paying": "wallet: a deposit or withdrawal is written, its transaction is open",
        "wallet.paid": "wallet: a deposit or withdrawal is committed and not answered",
        "archive.storing": "history: hands are written, their transaction is open",
        "archive.stored": "history: hands are committed and not answered",
        "reopen.drained": "table: nothing more of a closed shard can be saved",
        "reopen.noted": "table: it is noted which epoch ends",
        "reopen.ledger_opened": "table: the ledger has begun the next epoch",
        "reopen.epoch_begun": "table: the shard has begun it too",
        "reopen.some_tables_rebuilt": "table: some tables of the shard are made anew",
        "reopen.tables_rebuilt": "table: all of them are",
        "reopen.some_paid_back": "table: some escrow without a seat is paid back",
        "reopen.paid_back": "table: all of it is, the shard is not open yet",
    }
)
"""Every point, and where it is: `docs/FAIL-POINTS.md` is made of this."""

_folder: Final = os.environ.get(VARIABLE, "")


def reach(name: str) -> None:
    """The process is at the point `name`, one of `POINTS`."""
    if _folder:
        _take(Path(_folder), name)


def _take(folder: Path, name: str) -> None:
    taken = folder / f"{name}.{os.getpid()}"
    try:
        (folder / name).rename(taken)
    except FileNotFoundError:
        return
    wanted, _, whom = (taken.read_text().strip() or "SIGKILL").partition(" ")
    number = signal.Signals[wanted]
    taken.unlink()
    if whom == "group":
        os.killpg(os.getpgrp(), number)
    else:
        os.kill(os.getpid(), number)
