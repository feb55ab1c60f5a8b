"""Health, reflection and metrics of every process of a running room."""

import re
import urllib.request
from typing import Any
from uuid import uuid4

import grpc
import pytest
from doorcard.game.v1 import game_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from services.local.room import METRICS, TABLE_REPLICAS
from services.runtime.roles import METHOD_ROLES
from tests.integration.rooms import Places, client, player_to_act

Kind = game_pb2.ActionKind
NAME = re.compile(r"(doorcard|grpc_server|grpc_client|process|python)_[a-z0-9_]+")
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-|[@]")
TABLES = {
    "doorcard.table.v1.TableService",
    "doorcard.table.v1.TableInternalService",
    "doorcard.table.v1.TableAdminService",
}
SERVICES = {
    "shuffler": {"doorcard.shuffler.v1.ShufflerService"},
    "showdown": {"doorcard.showdown.v1.ShowdownService"},
    "wallet": {"doorcard.wallet.v1.WalletService"},
    "history": {"doorcard.history.v1.HistoryService"},
    "table": TABLES,
    "table-2": TABLES,
}
INFRASTRUCTURE = {"grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


def test_the_room_says_where_each_of_them_is(places: Places) -> None:
    assert set(places.services) == set(SERVICES)
    assert set(places.metrics) == set(METRICS)
    assert places.tables == [places.services[name] for name in TABLE_REPLICAS]


@pytest.mark.parametrize("name", SERVICES)
def test_it_is_healthy_as_a_whole_and_service_by_service(places: Places, name: str) -> None:
    with grpc.insecure_channel(places.services[name]) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # the type stubs leave its methods out
        for service in ("", *SERVICES[name]):
            request = health_pb2.HealthCheckRequest(service=service)
            answer = stub.Check(request, timeout=5)
            assert answer.status == health_pb2.HealthCheckResponse.SERVING, service
        with pytest.raises(grpc.RpcError) as caught:
            stub.Check(health_pb2.HealthCheckRequest(service="doorcard.Nothing"), timeout=5)
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("name", SERVICES)
def test_it_tells_its_methods_by_reflection(places: Places, name: str) -> None:
    with grpc.insecure_channel(places.services[name]) as channel:
        reflected = ProtoReflectionDescriptorDatabase(channel)
        assert set(reflected.get_services()) == SERVICES[name] | INFRASTRUCTURE
        for service in SERVICES[name]:
            file = reflected.FindFileContainingSymbol(service)
            methods = {
                f"/{file.package}.{each.name}/{method.name}"
                for each in file.service
                for method in each.method
            }
            expected = {method for method in METHOD_ROLES if method.startswith(f"/{service}/")}
            assert expected <= methods
            assert expected


@pytest.mark.parametrize("name", METRICS)
def test_its_metrics_parse_and_name_nobody(places: Places, name: str) -> None:
    families = scraped(places, name)
    build = [sample.labels["service"] for sample in families["doorcard_build_info"].samples]
    assert build == [name]
    for family in families.values():
        assert NAME.fullmatch(family.name), family.name
        assert family.documentation, family.name
        for sample in family.samples:
            assert not any(ID.search(value) for value in sample.labels.values()), sample
    if name in SERVICES:
        assert {"grpc_server_started", "grpc_server_handled"} <= families.keys()


async def test_actions_are_timed_at_the_replica_that_took_them(places: Places) -> None:
    async with client(places) as at:
        table_id = await at.create_table()
        await at.sit_down(table_id, [f"{name}-{uuid4().hex[:6]}" for name in ("anna", "ben")])
        for replica, name in enumerate(TABLE_REPLICAS):
            before = actions(places, name)
            view = await at.turn(table_id)
            first = bool(view.hand.turn.legal.bring_in)
            kind = Kind.ACTION_KIND_BRING_IN if first else Kind.ACTION_KIND_CALL
            await at.act(view, player_to_act(view), game_pb2.Action(kind=kind), at=replica)
            label = "bring_in" if first else "call"
            after = actions(places, name)
            assert after[label, "total", "ok"] == before.get((label, "total", "ok"), 0) + 1
            assert after[label, "commit", "ok"] > before.get((label, "commit", "ok"), 0)
            assert {stage for _, stage, _ in after} >= {"queue", "rules", "commit", "total"}


def scraped(places: Places, name: str) -> dict[str, Metric]:
    """A process's metrics by name."""
    with urllib.request.urlopen(places.metrics[name], timeout=5) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.read().decode()
    return {family.name: family for family in text_string_to_metric_families(text)}


def actions(places: Places, name: str) -> dict[tuple[str, str, str], float]:
    """(action, stage, outcome) -> how many a replica has timed."""
    family = scraped(places, name)["doorcard_action_duration_seconds"]
    return {
        (sample.labels["action"], sample.labels["stage"], sample.labels["outcome"]): sample.value
        for sample in family.samples
        if sample.name == "doorcard_action_duration_seconds_count"
    }
