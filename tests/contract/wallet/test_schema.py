"""The schema: brought up by whoever starts first, however many start at once."""

from concurrent.futures import ThreadPoolExecutor

import psycopg

from services.runtime.schema import upgrade
from services.wallet.opening import MIGRATIONS
from tests.postgres import Cluster


def test_many_upgrades_at_once_give_one_schema(postgres_cluster: Cluster) -> None:
    url = postgres_cluster.create()
    with ThreadPoolExecutor(4) as threads:
        for each in [threads.submit(upgrade, url, MIGRATIONS) for _ in range(4)]:
            each.result()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM alembic_version").fetchall() == [(1,)]
    upgrade(url, MIGRATIONS)
    postgres_cluster.drop(url)
