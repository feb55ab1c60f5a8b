"""Embedded Valkey and PostgreSQL: durable, closed to strangers, back after a kill and after a
restart.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis.asyncio
from redis.exceptions import AuthenticationError

from services.local.embedded import (
    ROOTS_STAND_IN,
    SUPERUSER,
    create_databases,
    postgres_program,
    postgres_url,
    valkey_program,
    valkey_url,
)
from services.local.ports import HeldPorts
from services.local.supervisor import Supervisor
from tests.contract.local.test_supervised_processes import until
from tests.integration.rooms import new_home


@pytest.fixture
def home() -> Iterator[Path]:
    """A data folder that PostgreSQL's user can reach, whoever else runs pytest meanwhile."""
    with new_home() as folder:
        yield folder


class Servers:
    def __init__(self, supervisor: Supervisor, valkey_port: int, postgres_port: int) -> None:
        self._supervisor = supervisor
        self._valkey_port = valkey_port
        self._postgres_port = postgres_port

    @asynccontextmanager
    async def valkey(self, password: str = "pw1") -> AsyncIterator[Any]:
        async with redis.asyncio.from_url(valkey_url(self._valkey_port, password)) as client:
            yield client

    @asynccontextmanager
    async def database(
        self, name: str, user: str, password: str
    ) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        url = postgres_url(self._postgres_port, user, password, name)
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            yield connection

    async def create(self, **passwords: str) -> None:
        superuser = postgres_url(self._postgres_port, SUPERUSER, "pw2", SUPERUSER)
        await create_databases(superuser, passwords)

    async def kill_all(self) -> None:
        names = self._supervisor.names()
        for name in names:
            os.kill(self._supervisor.pid(name), signal.SIGKILL)
        await until(
            lambda: all(
                self._supervisor.restarts(name) == 1 and self._supervisor.state(name) == "ready"
                for name in names
            )
        )


@asynccontextmanager
async def up(home: Path) -> AsyncIterator[Servers]:
    ports = HeldPorts()
    valkey_port, postgres_port = ports.for_database(), ports.for_database()
    async with Supervisor(home / "logs") as supervisor:
        await supervisor.start(
            valkey_program("valkey", home / "valkey", valkey_port, "pw1"),
            await postgres_program("postgres", home / "postgres", postgres_port, "pw2"),
        )
        yield Servers(supervisor, valkey_port, postgres_port)
    ports.release()


async def test_data_outlive_kills_and_restarts_and_strangers_stay_out(home: Path) -> None:
    async with up(home) as servers:
        async with servers.valkey() as client:
            await client.set("blob", "1")
            rules = await client.config_get("append*", "maxmemory-policy")
        assert rules["appendonly"] == "yes"
        assert rules["appendfsync"] == "always"
        assert rules["maxmemory-policy"] == "noeviction"
        with pytest.raises(AuthenticationError):
            async with servers.valkey("wrong") as client:
                await client.get("blob")

        await servers.create(wallet="w1", history="h1")
        async with servers.database("wallet", "wallet", "w1") as ledger:
            await ledger.execute("CREATE TABLE posting (amount bigint)")
            await ledger.execute("INSERT INTO posting VALUES (500)")
        for user, password in (("wallet", "wrong"), ("history", "h1")):
            with pytest.raises(psycopg.OperationalError):
                async with servers.database("wallet", user, password):
                    pass

        await servers.kill_all()
        await seen_again(servers)

    async with up(home) as servers:
        await servers.create(wallet="w1", history="h1")
        await seen_again(servers)


async def seen_again(servers: Servers) -> None:
    async with servers.valkey() as client:
        assert await client.get("blob") == b"1"
    async with servers.database("wallet", "wallet", "w1") as ledger:
        found = await ledger.execute("SELECT sum(amount) FROM posting")
        assert await found.fetchone() == (500,)


async def test_a_process_id_of_a_killed_server_that_somebody_else_has_now_is_no_obstacle(
    home: Path,
) -> None:
    async with up(home):
        pass
    (home / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n/elsewhere\n0\n1\n\n\n\n")
    async with up(home) as servers:
        await servers.create(wallet="w1")


async def test_a_killed_server_that_nobody_has_collected_yet_is_no_obstacle(home: Path) -> None:
    async with up(home):
        pass
    # Dead, and of the server's name and user, until it is waited for.
    namesake = home / "namesake" / "postgres"
    namesake.parent.mkdir()
    shutil.copy("/bin/true", namesake)
    for path in (home, namesake.parent, namesake):
        path.chmod(0o755)
    user = ROOTS_STAND_IN if os.geteuid() == 0 else None
    with subprocess.Popen([namesake], user=user) as dead:
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
        noted = home / "postgres" / "postmaster.pid"
        noted.write_text(f"{dead.pid}\n/elsewhere\n0\n1\n\n\n\n")
        async with up(home) as servers:
            await servers.create(wallet="w1")
