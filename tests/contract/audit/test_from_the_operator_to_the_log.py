"""What an operator changes is in the audit log once: through outbox, ledger and archive, whatever
is killed in between.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from doorcard.history.v1 import history_pb2
from structlog.testing import capture_logs
from typer.testing import CliRunner

from services.local.__main__ import app
from services.runtime.errors import DoorcardError
from services.settlement.drain import Drain
from services.settlement.peers import Peers, connect_peers
from services.settlement.settings import WorkerSettings
from services.table.operators.reopened_shards import ReopenedShards
from services.table.shards.reopening import Account
from tests import valkey
from tests.conftest import Room
from tests.contract.history.conftest import Caller
from tests.contract.history.conftest import Start as StartArchive
from tests.contract.settlement.test_drain import DyingPeers, Killed
from tests.contract.table.replicas import SHARDS, Cluster, cluster
from tests.contract.table.test_operators_service import Admin, like
from tests.contract.wallet.conftest import Start

AUDITOR = ("audrey", ["auditor"])


class Scene:
    """Tables with an operator, and the log that his changes end in."""

    def __init__(self, tables: Cluster, archive: Caller, peers: Peers) -> None:
        self.tables = tables
        self.archive = archive
        self.peers = peers
        self.admin = Admin(tables)

    async def drain(self, peers: Peers | None = None) -> None:
        """One trigger for every shard."""
        drain = Drain(peers or self.peers, batch=2)
        for shard in range(SHARDS):
            await asyncio.to_thread(drain.shard, shard)

    async def log(self) -> list[history_pb2.AuditEntry]:
        """The log, oldest first."""
        request = history_pb2.ListAuditRecordsRequest(page_size=100)
        found: list[history_pb2.AuditEntry] = []
        while True:
            answer = await self.archive("ListAuditRecords", request, *AUDITOR)
            found += answer.entries
            request.page_token = answer.next_page_token
            if not request.page_token:
                return found[::-1]


@asynccontextmanager
async def scene(
    room: Room, server: valkey.Valkey, start: Start, archive: StartArchive
) -> AsyncIterator[Scene]:
    """Everything, running."""
    async with (
        start(shards=SHARDS) as wallet,
        archive() as history,
        cluster(room, server, wallet_address=wallet.address) as tables,
    ):
        await tables.add_replica()
        settings = room.settings(
            WorkerSettings,
            broker_url="redis://unused",
            table_addresses=tuple(each.address for each in tables.running),
            wallet_address=wallet.address,
            history_address=history.address,
            token_file=room.token_file("settlement", ("service",)),
        )
        yield Scene(tables, history, connect_peers(settings, timeout_s=5))


async def test_every_change_is_in_the_log_once_whenever_the_drain_is_killed(
    room: Room, server: valkey.Valkey, start: Start, archive: StartArchive
) -> None:
    async with scene(room, server, start, archive) as at:
        table_id = await at.tables.create()
        named = {"table_id": table_id, "reason": "a look"}
        done = ["create_table"]
        survived = False
        die_at = 0
        while not survived:
            die_at += 1
            assert die_at < 40
            await at.admin("PauseTable", **named)
            await at.admin("ResumeTable", table_id=table_id)
            await at.admin("PutTemplate", name=f"night-{die_at}", table=like())
            done += ["pause_table", "resume_table", "put_template"]
            try:
                await at.drain(DyingPeers(at.peers, die_at, before=die_at % 2 == 0))
                survived = True
            except Killed:
                pass
            await at.drain()
        logged = await at.log()
        assert sorted(each.record.action for each in logged) == sorted(done)
        assert [each.number for each in logged] == list(range(1, len(done) + 1))
        assert len({each.record.record_id for each in logged}) == len(done)
        found = await at.archive("VerifyAuditLog", history_pb2.VerifyAuditLogRequest(), *AUDITOR)
        assert (found.records, found.broken_at) == (len(done), 0)
        of_table = [each.record.action for each in logged if each.record.table_id == table_id]
        assert of_table == [each for each in done if each != "put_template"]


async def test_a_record_needs_no_money_and_waits_behind_none(
    room: Room, server: valkey.Valkey, start: Start, archive: StartArchive
) -> None:
    async with scene(room, server, start, archive) as at:
        await at.admin("PutTemplate", name="night", table=like())
        table_id = (await at.admin("CreateTableFromTemplate", template="night")).table.config
        await at.admin("CloseTable", table_id=table_id.table_id, reason="not needed")
        await at.drain()
        await at.drain()
        assert sorted(each.record.action for each in await at.log()) == [
            "close_table",
            "create_table_from_template",
            "put_template",
        ]


async def test_a_reopened_shard_is_on_record_once_by_whoever_sees_it(
    room: Room, server: valkey.Valkey, start: Start, archive: StartArchive
) -> None:
    async with scene(room, server, start, archive) as at:
        await at.tables.add_replica()
        table_id = await at.tables.create()
        store, other = (replica.store for replica in at.tables.replicas)
        shard = store.shard_of(table_id)
        await at.drain()
        with server.client() as client:
            client.hset(f"{{t{shard}}}:shard", "state", "closed")
        for _ in range(20):
            await asyncio.gather(*(each.reopening.once() for each in at.tables.replicas))
            if (await store.shard(shard)).epoch == 2:
                break
            await at.drain()
        opener = ReopenedShards(store)
        opener.told(Account(shard, 2, "TEST", tables=1))
        await opener.once()
        for _ in range(3):
            await asyncio.gather(ReopenedShards(other).once(), opener.once())
        watcher = ReopenedShards(other)
        for _ in range(3):
            await watcher.once()
        await at.drain()
        reopened = [e.record for e in await at.log() if e.record.action == "reopen_shard"]
        assert [(each.subject, each.request_id) for each in reopened] == [
            (f"shard {shard}", "epoch-2")
        ]
        changes = {each.field: (each.before, each.after) for each in reopened[0].changes}
        assert changes["epoch"] == ("1", "2")


class Command:
    """`doorcard ARGUMENTS`."""

    def __init__(self, at: Scene) -> None:
        self._env = {
            "DOORCARD_TABLE_ADDRESSES": at.tables.running[0].address,
            "DOORCARD_HISTORY_ADDRESS": at.archive.address,
            "DOORCARD_TOKEN": at.tables.room.token("olga", ("operator",)),
            "COLUMNS": "240",
        }

    async def __call__(self, *arguments: str) -> tuple[int, str]:
        runner = CliRunner(env=self._env)
        with capture_logs():
            result = await asyncio.to_thread(runner.invoke, app, ["tables", *arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, result.stdout or result.output

    async def found(self, *arguments: str) -> Any:
        """What it says as JSON."""
        status, text = await self(*arguments, "--json")
        assert status == 0, text
        return json.loads(text)


async def test_operators_do_it_all_from_the_command_line(
    room: Room, server: valkey.Valkey, start: Start, archive: StartArchive
) -> None:
    async with scene(room, server, start, archive) as at:
        doorcard = Command(at)
        table_id = await at.tables.create()
        why = ("--reason", "a look")
        assert (await doorcard("pause", table_id, *why))[0] == 0
        inspected = await doorcard.found("inspect", table_id)
        assert inspected["table"]["state"] == "TABLE_STATE_PAUSED"
        assert inspected["reason"] == "a look"
        assert (await doorcard("resume", table_id))[1] == f"{table_id} goes on\n"
        assert (await doorcard.found("maintain", table_id, *why))["begun"] is True
        assert (await doorcard("announce", "Soon.", "--table", table_id))[0] == 0
        status, said = await doorcard("void", table_id, str(uuid4()), *why)
        assert (status, "STALE_HAND" in said) == (2, True)
        assert (await doorcard("remove", table_id, "nobody", *why))[0] == 2
        closed = await doorcard.found("close", table_id, *why, "--request-id", "r-1")
        assert (closed["closed"], closed["request"]) == (True, "r-1")
        await at.drain()
        listed = await doorcard.found("audit", "--table", table_id)
        assert [each["action"] for each in reversed(listed)] == [
            "create_table",
            "pause_table",
            "resume_table",
            "set_maintenance",
            "announce",
            "close_table",
        ]
        assert (await doorcard("audit", "--by", "nobody"))[1] == "nothing is on record\n"
        assert "a look" in (await doorcard("audit"))[1]
        assert (await doorcard.found("audit", "--verify"))["broken_at"] == 0
        status, said = await doorcard("audit", "--from", "yesterday")
        assert (status, "--from" in said) == (2, True)


async def test_a_wrong_token_changes_nothing(
    room: Room, server: valkey.Valkey, start: Start, archive: StartArchive
) -> None:
    async with scene(room, server, start, archive) as at:
        table_id = await at.tables.create()
        with pytest.raises(DoorcardError):
            await at.admin("PauseTable", roles="player", table_id=table_id, reason="x")
        await at.drain()
        assert [each.record.action for each in await at.log()] == ["create_table"]
