"""deploy/kubernetes: both overlays build, are valid, and every reference leads somewhere."""

import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from services.local.secrets import write_secrets
from services.runtime.listen import split_listen
from services.runtime.settings import ENV_PREFIX, ServiceSettings
from tests.deploy.processes import settings_of

pytestmark = pytest.mark.deep
FOLDER: Final = Path(__file__).parent.parent.parent / "deploy" / "kubernetes"
ROOMS: Final = ("base", "overlays/small", "overlays/large")
VERSION: Final = "1.37"
NAME: Final = "app.kubernetes.io/name"
SECRETS: Final = "/run/secrets/doorcard"
CALLS: Final = {
    "table": {"shuffler", "showdown", "wallet"},
    "settlement-worker": {"table", "wallet", "history"},
    "settlement-beat": {"wallet"},
}
"""Which service calls which, as the design says."""
STORES: Final = {
    "table": {"tables-redis"},
    "wallet": {"room-postgres"},
    "history": {"room-postgres"},
    "migrate-wallet": {"room-postgres"},
    "migrate-history": {"room-postgres"},
    "settlement-worker": {"broker"},
    "settlement-beat": {"broker"},
}
STORE_FOLDERS: Final = ("stores", "stores-large")
OF_OPERATORS: Final = {
    "ServiceMonitor",
    "PrometheusRule",
    "Cluster",
    "Database",
    "Redis",
    "RedisCluster",
}
"""Kinds that operators bring; their schemas are not Kubernetes' own."""

Manifest = dict[str, Any]


@cache
def built(folder: str) -> tuple[Manifest, ...]:
    """What `kubectl kustomize` makes of a folder."""
    program = shutil.which("kubectl")
    assert program, "kubectl is missing: make deploy-tools"
    done = subprocess.run(
        [program, "kustomize", str(FOLDER / folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return tuple(yaml.safe_load_all(done.stdout))


def of_kind(folder: str, *kinds: str) -> dict[str, Manifest]:
    return {each["metadata"]["name"]: each for each in built(folder) if each["kind"] in kinds}


def pods(folder: str) -> dict[str, Manifest]:
    """Name of a Deployment or Job -> its pod template."""
    workloads = of_kind(folder, "Deployment", "Job")
    return {name: each["spec"]["template"] for name, each in workloads.items()}


def container(pod: Manifest) -> Manifest:
    (only,) = pod["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def given(one: Manifest) -> dict[str, str]:
    """A container's own variables, without those that Kubernetes fills in."""
    return {each["name"]: each["value"] for each in one["env"] if "value" in each}


def selected(folder: str, selector: dict[str, str]) -> set[str]:
    """Workloads whose pods carry these labels."""
    return {
        name
        for name, pod in pods(folder).items()
        if selector.items() <= pod["metadata"]["labels"].items()
    }


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secrets")
    write_secrets(
        folder,
        room="room",
        days=1,
        postgres="room-postgres-rw.doorcard-stores:5432",
        redis="tables-redis.doorcard-stores:6379",
        broker="broker.doorcard-stores:6379",
    )
    return folder


@pytest.mark.parametrize("folder", [*ROOMS, *STORE_FOLDERS])
def test_every_manifest_is_valid(folder: str) -> None:
    for each in built(folder):
        if each["kind"] not in OF_OPERATORS:
            kubernetes_validate.validate(each, VERSION, strict=True)


@pytest.mark.parametrize("folder", [*ROOMS, *STORE_FOLDERS])
def test_everything_lies_in_a_namespace_that_is_made(folder: str) -> None:
    (namespace,) = of_kind(folder, "Namespace")
    for each in built(folder):
        if each["kind"] != "Namespace":
            assert each["metadata"]["namespace"] == namespace, each["metadata"]["name"]


@pytest.mark.parametrize("folder", ROOMS)
def test_every_process_of_a_room_is_there(folder: str) -> None:
    commands = {" ".join(container(pod)["args"]) for pod in pods(folder).values()}
    assert commands == {
        "services.shuffler",
        "services.showdown",
        "services.wallet",
        "services.wallet.migrate",
        "services.history",
        "services.history.migrate",
        "services.table",
        "services.settlement worker",
        "services.settlement beat",
    }


@pytest.mark.parametrize("folder", ROOMS)
def test_settings_are_known_and_taken(
    folder: str, secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = of_kind(folder, "ConfigMap")
    for name, pod in pods(folder).items():
        one = container(pod)
        kind: Any = settings_of(one["args"])
        known = {f"{ENV_PREFIX}{field.upper()}" for field in kind.model_fields}
        own = given(one)
        assert set(own) <= known, name
        shared = dict(
            pair for source in one["envFrom"]
            for pair in maps[source["configMapRef"]["name"]]["data"].items()
        )  # fmt: skip
        with monkeypatch.context() as environment:
            for variable, value in (shared | own).items():
                environment.setenv(variable, value.replace(SECRETS, str(secrets)))
            settings: ServiceSettings = kind(_secrets_dir=secrets)
        for path in (settings.auth_keys_file, settings.token_file):
            assert path is None or path.exists(), name


@pytest.mark.parametrize("folder", ROOMS)
def test_shared_settings_belong_to_somebody(folder: str) -> None:
    fields: set[str] = {"SECRETS_DIR"}
    for pod in pods(folder).values():
        fields |= {field.upper() for field in settings_of(container(pod)["args"]).model_fields}
    (room,) = of_kind(folder, "ConfigMap").values()
    assert {key.removeprefix(ENV_PREFIX) for key in room["data"]} <= fields


@pytest.mark.parametrize("folder", ROOMS)
def test_secrets_are_by_reference_and_made_by_the_command(folder: str, secrets: Path) -> None:
    assert not of_kind(folder, "Secret")
    for name, pod in pods(folder).items():
        (volume,) = (each for each in pod["spec"]["volumes"] if each["name"] == "secrets")
        mounted = {
            item["path"]
            for source in volume["projected"]["sources"]
            for item in source["secret"]["items"]
        }
        for key in mounted:
            assert (secrets / key).exists(), f"{name}: doorcard secrets makes no {key}"
        used = {
            value.removeprefix(f"{SECRETS}/")
            for value in given(container(pod)).values()
            if value.startswith(SECRETS)
        }
        assert used <= mounted, name
        urls = {each for each in mounted if each.startswith("doorcard_")}
        assert mounted == used | urls, f"{name} mounts what it does not use"


@pytest.mark.parametrize("folder", ROOMS)
def test_pods_are_confined(folder: str) -> None:
    (namespace,) = of_kind(folder, "Namespace").values()
    labels = namespace["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    accounts = of_kind(folder, "ServiceAccount")
    for name, pod in pods(folder).items():
        spec, one = pod["spec"], container(pod)
        assert spec["serviceAccountName"] in accounts, name
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert set(one["resources"]["requests"]) == {"cpu", "memory"}
        assert one["resources"]["limits"]["memory"]
        assert {each["name"] for each in one["volumeMounts"]} == {
            each["name"] for each in spec["volumes"]
        }
        _, _, tag = one["image"].rpartition(":")
        assert tag, name
        assert tag != "latest", name


@pytest.mark.parametrize("folder", ROOMS)
def test_every_deployment_is_asked_how_it_is_and_drains(folder: str) -> None:
    (room,) = of_kind(folder, "ConfigMap").values()
    drain_s = float(room["data"]["DOORCARD_DRAIN_SECONDS"])
    for name, deployment in of_kind(folder, "Deployment").items():
        pod = deployment["spec"]["template"]
        assert deployment["spec"]["selector"]["matchLabels"].items() <= (
            pod["metadata"]["labels"].items()
        )
        one = container(pod)
        ports = {each["name"]: each["containerPort"] for each in one["ports"]}
        own = given(one)
        assert split_listen(own["DOORCARD_METRICS_LISTEN"])[1] == ports["metrics"]
        if "grpc" in ports:
            assert split_listen(own["DOORCARD_LISTEN"])[1] == ports["grpc"]
        for question in ("startupProbe", "readinessProbe", "livenessProbe"):
            if "grpc" in ports:
                assert one[question]["grpc"]["port"] == ports["grpc"], name
            else:
                assert one[question]["httpGet"]["port"] in ports, name
        pause_s = one["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert pause_s + drain_s < pod["spec"]["terminationGracePeriodSeconds"]


@pytest.mark.parametrize("folder", ROOMS)
def test_services_are_headless_and_lead_to_their_pods(folder: str) -> None:
    services = of_kind(folder, "Service")
    assert set(services) == set(of_kind(folder, "Deployment"))
    for name, service in services.items():
        assert service["spec"]["clusterIP"] == "None"
        assert selected(folder, service["spec"]["selector"]) == {name}
        ports = {each["name"] for each in container(pods(folder)[name])["ports"]}
        assert {each["targetPort"] for each in service["spec"]["ports"]} == ports


@pytest.mark.parametrize("folder", ROOMS)
def test_addresses_are_services(folder: str) -> None:
    (room,) = of_kind(folder, "ConfigMap").values()
    services = of_kind(folder, "Service")
    for key, value in room["data"].items():
        if key.endswith(("_ADDRESS", "_ADDRESSES")) and "SMTP" not in key:
            host, port = split_listen(value)
            assert port in {each["port"] for each in services[host]["spec"]["ports"]}, key


@pytest.mark.parametrize("folder", ROOMS)
def test_budgets_and_autoscalers_are_of_deployments_and_beat_is_one(folder: str) -> None:
    deployments = of_kind(folder, "Deployment")
    scaled = of_kind(folder, "HorizontalPodAutoscaler")
    for name, each in scaled.items():
        target = each["spec"]["scaleTargetRef"]
        assert (target["kind"], target["name"]) == ("Deployment", name)
        assert "replicas" not in deployments[name]["spec"], "the autoscaler decides"
        assert 1 <= each["spec"]["minReplicas"] < each["spec"]["maxReplicas"]
    assert scaled["table"]["spec"]["minReplicas"] >= 2
    for name, each in of_kind(folder, "PodDisruptionBudget").items():
        assert selected(folder, each["spec"]["selector"]["matchLabels"]) == {name}
    assert set(deployments) - set(scaled) == {"settlement-beat"}
    beat = deployments["settlement-beat"]["spec"]
    assert beat["replicas"] == 1
    assert beat["strategy"] == {"type": "Recreate"}


# -- network policies


def rules(folder: str, direction: str) -> Iterator[tuple[str, Manifest]]:
    """(workload, rule) of every policy that selects it."""
    for policy in of_kind(folder, "NetworkPolicy").values():
        selector = policy["spec"]["podSelector"].get("matchLabels", {})
        for workload in selected(folder, selector):
            for rule in policy["spec"].get(direction, ()):
                yield workload, rule


def other_labels(rule: Manifest, direction: str) -> Iterator[dict[str, str]]:
    for peer in rule.get("to" if direction == "egress" else "from", ()):
        yield peer.get("podSelector", {}).get("matchLabels", {})


@pytest.mark.parametrize("folder", ROOMS)
def test_nothing_is_open_by_default(folder: str) -> None:
    deny = of_kind(folder, "NetworkPolicy")["default-deny"]["spec"]
    assert deny == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@pytest.mark.parametrize("folder", ROOMS)
def test_policies_select_pods_that_exist(folder: str) -> None:
    for name, policy in of_kind(folder, "NetworkPolicy").items():
        assert selected(folder, policy["spec"]["podSelector"].get("matchLabels", {})), name


@pytest.mark.parametrize("folder", ROOMS)
def test_who_calls_whom_is_open_at_both_ends_and_nothing_else(folder: str) -> None:
    services = of_kind(folder, "Service")
    out: dict[str, set[str]] = {}
    for caller, rule in rules(folder, "egress"):
        for labels in other_labels(rule, "egress"):
            if NAME in labels:
                called = labels[NAME]
                out.setdefault(caller, set()).add(called)
                port = next(
                    each["port"] for each in services[called]["spec"]["ports"]
                    if each["name"] == "grpc"
                )  # fmt: skip
                assert rule["ports"] == [{"protocol": "TCP", "port": port}]
    assert out == CALLS
    into: dict[str, set[str]] = {}
    for called, rule in rules(folder, "ingress"):
        for labels in other_labels(rule, "ingress"):
            if NAME in labels:
                into.setdefault(labels[NAME], set()).add(called)
                ports = {each["name"] for each in container(pods(folder)[called])["ports"]}
                assert {each["port"] for each in rule["ports"]} <= ports
    assert into == CALLS


@pytest.mark.parametrize("folder", ROOMS)
def test_stores_are_open_at_both_ends_to_their_owners(folder: str) -> None:
    large = folder.endswith("large")
    stores = "stores-large" if large else "stores"
    tables_redis = {"redis_setup_type": "cluster"} if large else {"app": "tables-redis"}
    labelled = {
        "tables-redis": tables_redis,
        "broker": {"app": "broker"},
        "room-postgres": {"cnpg.io/cluster": "room-postgres"},
    }
    made = of_kind(stores, "Redis", "RedisCluster", "Cluster")
    assert set(made) == set(labelled)
    out: dict[str, set[str]] = {}
    for caller, rule in rules(folder, "egress"):
        for labels in other_labels(rule, "egress"):
            for store, wanted in labelled.items():
                if labels == wanted:
                    out.setdefault(caller, set()).add(store)
    assert out == STORES
    for store, policy in of_kind(stores, "NetworkPolicy").items():
        assert policy["spec"]["podSelector"]["matchLabels"] == labelled[store]
        owners: set[str] = set()
        for rule in policy["spec"]["ingress"]:
            for peer in rule["from"]:
                selector = peer.get("podSelector", {})
                owners |= {selector.get("matchLabels", {}).get(NAME, "")}
                for each in selector.get("matchExpressions", ()):
                    owners |= set(each["values"])
        assert owners - {""} == {owner for owner, used in STORES.items() if store in used}


@pytest.mark.parametrize("folder", ROOMS)
def test_prometheus_sees_every_process_and_has_the_rules(folder: str) -> None:
    (monitor,) = of_kind(folder, "ServiceMonitor").values()
    wanted = monitor["spec"]["selector"]["matchLabels"]
    for name, service in of_kind(folder, "Service").items():
        labels = service["metadata"]["labels"]
        assert wanted.items() <= labels.items()
        assert labels[monitor["spec"]["jobLabel"]] == name
        ports = {each["name"] for each in service["spec"]["ports"]}
        assert {each["port"] for each in monitor["spec"]["endpoints"]} <= ports
    (manifest,) = of_kind(folder, "PrometheusRule").values()
    count = sum(len(group["rules"]) for group in manifest["spec"]["groups"])
    files = sorted((FOLDER.parent / "prometheus/rules").glob("*.yml"))
    groups = [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    assert count == sum(len(group["rules"]) for group in groups)


def test_discovery_without_the_operator_finds_the_same_pods() -> None:
    config = yaml.safe_load((FOLDER.parent / "prometheus/prometheus-kubernetes.yml").read_text())
    (job,) = config["scrape_configs"]
    (discovery,) = job["kubernetes_sd_configs"]
    (namespace,) = of_kind("base", "Namespace")
    assert discovery["namespaces"]["names"] == [namespace]
    kept = {
        rule["source_labels"][0].removeprefix("__meta_kubernetes_pod_"): rule["regex"]
        for rule in job["relabel_configs"]
        if rule.get("action") == "keep"
    }
    assert kept == {
        "label_app_kubernetes_io_part_of": "doorcard",
        "container_port_name": "metrics",
    }
    for name in of_kind("base", "Deployment"):
        pod = pods("base")[name]
        assert pod["metadata"]["labels"]["app.kubernetes.io/part-of"] == "doorcard"
        assert "metrics" in {each["name"] for each in container(pod)["ports"]}


def test_a_large_rooms_tables_are_on_a_cluster_whose_replicas_confirm() -> None:
    redis = of_kind("stores-large", "RedisCluster")["tables-redis"]["spec"]
    assert redis["clusterSize"] >= 3
    (room,) = of_kind("overlays/large", "ConfigMap").values()
    required = int(room["data"]["DOORCARD_REPLICAS_REQUIRED"])
    assert redis["redisFollower"]["replicas"] >= required * redis["redisLeader"]["replicas"]
    settings = of_kind("stores-large", "ConfigMap")["tables-redis-cluster"]["data"]
    single = of_kind("stores", "ConfigMap")["tables-redis"]["data"]
    assert settings["redis-additional.conf"].startswith(single["redis-additional.conf"])


def test_large_has_more_of_everything_than_small() -> None:
    small, large = (
        of_kind(f"overlays/{size}", "HorizontalPodAutoscaler") for size in ("small", "large")
    )
    for name, each in small.items():
        assert each["spec"]["minReplicas"] < large[name]["spec"]["minReplicas"], name
        assert each["spec"]["maxReplicas"] < large[name]["spec"]["maxReplicas"], name
