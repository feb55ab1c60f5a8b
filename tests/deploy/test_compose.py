"""docker-compose.yml follows the code: commands, ports, variables, files, secrets, build target."""

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pydantic import ValidationError

from services.local.secrets import write_secrets
from services.runtime.listen import split_listen
from services.runtime.settings import ENV_PREFIX, ServiceSettings
from tests.deploy.dockerfile import instructions
from tests.deploy.processes import settings_of

ROOT: Final = Path(__file__).parent.parent.parent
COMPOSE: Final = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: Final[dict[str, dict[str, Any]]] = COMPOSE["services"]
OURS: Final = {name: each for name, each in SERVICES.items() if "build" in each}
MOUNTED: Final = "/run/secrets/"


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secrets")
    write_secrets(
        folder,
        room="room",
        days=1,
        postgres="postgres:5432",
        redis="tables-redis:6379",
        broker="broker:6379",
    )
    return folder


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ServiceSettings.model_fields:
        monkeypatch.delenv(f"{ENV_PREFIX}{name.upper()}", raising=False)
    return monkeypatch


def networks(service: dict[str, Any]) -> dict[str, dict[str, Any]]:
    given = service["networks"]
    return given if isinstance(given, dict) else {name: {} for name in given}


def names_of(service: str) -> set[str]:
    """What other containers may call it."""
    aliases = (each.get("aliases", ()) for each in networks(SERVICES[service]).values() if each)
    return {service}.union(*aliases)


def loaded(name: str, secrets: Path, environment: pytest.MonkeyPatch) -> ServiceSettings:
    """The settings that the container's process would read."""
    for variable, value in OURS[name]["environment"].items():
        environment.setenv(variable, value.replace(MOUNTED.rstrip("/"), str(secrets)))
    kind: Any = settings_of(OURS[name]["command"])
    try:
        return kind(_secrets_dir=secrets)  # type: ignore[no-any-return]
    except ValidationError as error:
        raise AssertionError(f"{name}: {error}") from None


def test_every_process_of_a_room_is_there_and_tables_twice() -> None:
    commands = [" ".join(each["command"]) for each in OURS.values()]
    assert sorted(commands) == [
        "services.history",
        "services.settlement beat",
        "services.settlement worker",
        "services.showdown",
        "services.shuffler",
        "services.table",
        "services.table",
        "services.wallet",
    ]


@pytest.mark.parametrize("name", OURS)
def test_its_command_and_its_variables_exist_and_are_taken(
    name: str, secrets: Path, environment: pytest.MonkeyPatch
) -> None:
    service = OURS[name]
    assert importlib.util.find_spec(f"{service['command'][0]}.__main__")
    fields = settings_of(service["command"]).model_fields
    known = {f"{ENV_PREFIX}{field.upper()}" for field in fields} | {f"{ENV_PREFIX}SECRETS_DIR"}
    assert set(service["environment"]) <= known
    settings = loaded(name, secrets, environment)
    for path in (settings.auth_keys_file, settings.token_file):
        assert path is None or path.exists()


@pytest.mark.parametrize("name", OURS)
def test_it_is_confined(name: str) -> None:
    service = OURS[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["healthcheck"]["test"][1:] == [
        "/opt/doorcard/bin/python",
        "-m",
        "services.runtime.health",
    ]


@pytest.mark.parametrize("name", OURS)
def test_it_reaches_whom_it_calls(
    name: str, secrets: Path, environment: pytest.MonkeyPatch
) -> None:
    for variable, address in OURS[name]["environment"].items():
        if not variable.endswith(("_ADDRESS", "_ADDRESSES")):
            continue
        host, port = split_listen(address)
        called = [other for other in SERVICES if host in names_of(other)]
        assert called, f"{variable}: nobody is called {host}"
        for other in called:
            assert set(networks(SERVICES[other])) & set(networks(OURS[name])), f"{name} to {other}"
            if other in OURS:
                listen = OURS[other]["environment"]["DOORCARD_LISTEN"]
                assert split_listen(listen)[1] == port, variable
    for url in ("table_redis_url", "broker_url", "wallet_database_url", "history_database_url"):
        if f"doorcard_{url}" in OURS[name]["secrets"]:
            text = (secrets / f"doorcard_{url}").read_text()
            host = text.rpartition("@")[2].partition(":")[0]
            assert set(networks(SERVICES[host])) & set(networks(OURS[name])), f"{name} to {host}"


def test_published_ports_are_those_that_processes_listen_to() -> None:
    taken: list[str] = []
    for name, service in SERVICES.items():
        for published in service.get("ports", ()):
            host, outside, inside = published.rsplit(":", 2)
            assert host == "127.0.0.1", name
            taken.append(outside)
            assert "edge" in networks(service), name
            if name in OURS:
                assert split_listen(service["environment"]["DOORCARD_LISTEN"])[1] == int(inside)
    assert len(taken) == len(set(taken))


def test_prometheus_scrapes_every_process_where_it_shows_its_metrics() -> None:
    groups = yaml.safe_load((ROOT / "deploy/prometheus/targets/room.yml").read_text())
    scraped = {target for group in groups for target in group["targets"]}
    shown = {
        f"{name}:{split_listen(each['environment']['DOORCARD_METRICS_LISTEN'])[1]}"
        for name, each in OURS.items()
    }
    assert scraped == shown
    for group in groups:
        for target in group["targets"]:
            name = target.partition(":")[0]
            assert name.startswith(group["labels"]["job"])
            assert "watch" in networks(OURS[name])


def test_secrets_are_made_by_the_command_and_all_used(secrets: Path) -> None:
    used = {secret for each in SERVICES.values() for secret in each.get("secrets", ())}
    assert used == set(COMPOSE["secrets"])
    for name, secret in COMPOSE["secrets"].items():
        assert (secrets / name).exists(), f"doorcard secrets makes no {name}"
        assert Path(secret["file"]) == Path("deploy/compose/secrets") / name
    for name, service in SERVICES.items():
        mounted = {f"{MOUNTED}{secret}" for secret in service.get("secrets", ())}
        for value in (service.get("environment") or {}).values():
            if value.startswith(MOUNTED):
                assert value in mounted, f"{name}: {value}"


def test_every_file_volume_and_network_is_there_and_used() -> None:
    volumes, used = set(COMPOSE["volumes"]), set()
    for name, service in SERVICES.items():
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            if source.startswith("./"):
                assert (ROOT / source).exists(), f"{name}: {source}"
            else:
                used.add(source)
    assert used == volumes
    assert set().union(*(networks(each) for each in SERVICES.values())) == set(COMPOSE["networks"])
    inside = {name for name, each in COMPOSE["networks"].items() if (each or {}).get("internal")}
    assert inside == set(COMPOSE["networks"]) - {"edge"}


def test_stores_are_reached_by_their_owners_only() -> None:
    def on(network: str) -> set[str]:
        return {name for name, each in SERVICES.items() if network in networks(each)}

    assert on("tables-store") == {"table", "table-2", "tables-redis"}
    assert on("ledger") == {"wallet", "history", "postgres"}
    assert on("celery") == {"settlement-worker", "settlement-beat", "broker"}
    assert on("mail") == {"settlement-worker", "mailcatcher", "alertmanager"}


def test_every_container_has_a_health_check_limits_and_an_image_by_tag() -> None:
    for name, service in SERVICES.items():
        assert service["healthcheck"]["test"], name
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory"}, name
        _, _, tag = service["image"].rpartition(":")
        assert tag, name
        assert tag != "latest", name
        for needed, condition in service.get("depends_on", {}).items():
            assert needed in SERVICES, name
            assert condition == {"condition": "service_healthy"}, name


def test_the_build_target_is_a_stage_of_the_dockerfile() -> None:
    stages = {each.words[-1] for each in instructions() if each.name == "FROM"}
    for service in OURS.values():
        assert (ROOT / service["build"]["context"] / "Dockerfile").exists()
        assert service["build"]["target"] in stages


def test_redis_for_tables_loses_and_evicts_nothing() -> None:
    text = (ROOT / "deploy/compose/redis/tables.conf").read_text()
    lines = dict(line.split(" ", 1) for line in text.splitlines() if line and line[0] != "#")
    assert lines["appendonly"] == "yes"
    assert lines["appendfsync"] == "always"
    assert lines["maxmemory-policy"] == "noeviction"
    assert int(lines["latency-monitor-threshold"]) > 0


@pytest.mark.deep
def test_docker_compose_takes_the_file() -> None:
    program = shutil.which("docker-compose")
    assert program, "docker-compose is missing: make deploy-tools"
    done = subprocess.run(
        [program, "-f", str(ROOT / "docker-compose.yml"), "config", "-q"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
