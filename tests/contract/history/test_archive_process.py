"""The archive as a process: it brings the schema up to date, answers, and ends at SIGTERM."""

from collections.abc import Callable, Iterator

import psycopg
import pytest
from doorcard.history.v1 import history_pb2 as pb
from doorcard.history.v1 import history_pb2_grpc

from services.runtime.channels import call_sync, connect_sync
from tests import hand_records as hands
from tests.conftest import Room
from tests.postgres import Cluster
from tests.processes import ServiceProcess

Start = Callable[[str], ServiceProcess]


@pytest.fixture
def start(room: Room) -> Iterator[Start]:
    """Start the archive on a database; what is left at the end is killed."""
    started: list[ServiceProcess] = []

    def launch(url: str) -> ServiceProcess:
        started.append(ServiceProcess(room, "history", HISTORY_DATABASE_URL=url))
        return started[-1]

    yield launch
    for process in started:
        process.kill()


@pytest.fixture
def empty_url(postgres_cluster: Cluster) -> str:
    return postgres_cluster.create()


def test_it_serves_on_an_empty_database_and_what_it_keeps_outlives_a_kill(
    room: Room, start: Start, empty_url: str
) -> None:
    hand = hands.showdown()
    settings = room.settings(token_file=room.token_file("settlement", ["service"]))
    for attempt in range(2):
        archive = start(empty_url)
        with connect_sync(f"127.0.0.1:{archive.ready().grpc}", settings) as channel:
            stub = history_pb2_grpc.HistoryServiceStub(channel)
            if attempt == 0:
                request = pb.StoreHandsRequest(shard=1, epoch=1, entries=[hands.entry(1, hand)])
                assert call_sync(stub.StoreHands, request, timeout_s=10).archived_seq == 1
                archive.kill()
            else:
                progress = pb.GetArchiveProgressRequest(shard=1)
                found = call_sync(stub.GetArchiveProgress, progress, timeout_s=10)
                assert (found.epoch, found.archived_seq) == (1, 1)
                assert archive.terminate() == 0


def test_it_ends_with_1_while_the_database_cannot_be_reached(start: Start, empty_url: str) -> None:
    elsewhere = empty_url.replace("host=", "host=/nowhere")
    archive = start(elsewhere)
    assert archive.process.wait(30) == 1


def test_a_database_that_went_away_is_unavailable_and_found_again(
    room: Room, start: Start, empty_url: str
) -> None:
    settings = room.settings(token_file=room.token_file("settlement", ["service"]))
    archive = start(empty_url)
    with connect_sync(f"127.0.0.1:{archive.ready().grpc}", settings) as channel:
        stub = history_pb2_grpc.HistoryServiceStub(channel)
        request = pb.GetArchiveProgressRequest(shard=1)
        call_sync(stub.GetArchiveProgress, request, timeout_s=10)
        with psycopg.connect(empty_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert call_sync(stub.GetArchiveProgress, request, timeout_s=10).epoch == 0
    assert archive.terminate() == 0
