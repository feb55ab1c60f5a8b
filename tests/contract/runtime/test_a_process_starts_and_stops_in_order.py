"""The life of a service's process, seen from outside."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client.parser import text_string_to_metric_families

from services.runtime.errors import DoorcardError
from services.runtime.ready import Ready, read_ready
from tests.conftest import Room
from tests.contract.runtime.echo import SERVICE, Client, text

ECHO = Path(__file__).with_name("echo.py")
ROOT = ECHO.parents[3]


class Process:
    def __init__(self, process: asyncio.subprocess.Process, ready: Ready, ready_file: Path) -> None:
        self._process = process
        self.ready = ready
        self.ready_file = ready_file
        self.address = f"127.0.0.1:{ready.grpc}"

    async def says(self) -> str:
        assert self._process.stdout is not None
        return (await self._process.stdout.readline()).decode().strip()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def answer_hanging(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")

    async def ended(self) -> tuple[int, list[str], list[dict[str, Any]]]:
        """Exit status, what it said on stdout since, its log."""
        out, err = await self._process.communicate()
        logged = [json.loads(line) for line in err.decode().splitlines()]
        return self._process.returncode or 0, out.decode().splitlines(), logged


@asynccontextmanager
async def process(room: Room, *arguments: str, **variables: str) -> AsyncIterator[Process]:
    ready_file = room.folder / "ready.json"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(ECHO),
        *arguments,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DOORCARD_SERVICE": "echo",
            "DOORCARD_LISTEN": "127.0.0.1:0",
            "DOORCARD_METRICS_LISTEN": "127.0.0.1:0",
            "DOORCARD_READY_FILE": str(ready_file),
            "DOORCARD_AUTH_KEYS_FILE": str(room.auth_keys_file),
            "DOORCARD_DRAIN_SECONDS": "20",
            **variables,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        while (ready := read_ready(ready_file)) is None:
            assert process.returncode is None
            await asyncio.sleep(0.01)
        yield Process(process, ready, ready_file)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def health(channel: aio.Channel, service: str = "") -> int:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
    return int(answer.status)


async def test_it_is_ready_healthy_listed_and_measured(room: Room) -> None:
    async with process(room) as echo, aio.insecure_channel(echo.address) as channel:
        assert echo.ready.service == "echo"
        serving = health_pb2.HealthCheckResponse.SERVING
        assert (await health(channel), await health(channel, SERVICE)) == (serving, serving)

        stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)  # type: ignore[arg-type]
        asked = reflection_pb2.ServerReflectionRequest(list_services="")
        async for listed in stub.ServerReflectionInfo(iter([asked])):
            names = {service.name for service in listed.list_services_response.service}
            assert names >= {SERVICE, "grpc.health.v1.Health"}

        url = f"http://127.0.0.1:{echo.ready.metrics}/metrics"
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
        families = {family.name: family for family in text_string_to_metric_families(page)}
        assert {
            "doorcard_build_info",
            "doorcard_action_duration_seconds",
            "grpc_server_started",
            "process_resident_memory_bytes",
            "python_gc_collections",
            "python_info",
        } <= set(families)
        build = families["doorcard_build_info"].samples[0].labels
        assert build["service"] == "echo"
        echo.signal(signal.SIGTERM)
        assert (await echo.ended())[0] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_in_order_and_exits_0(room: Room, number: int) -> None:
    async with process(room) as echo, aio.insecure_channel(echo.address) as channel:
        client = Client(channel)
        hanging = client.unary(text("hang"), metadata=room.metadata(), timeout=20)
        assert await echo.says() == "hanging"
        watcher = client.bidi(metadata=room.metadata())
        await watcher.write(text("until drained"))
        assert await echo.says() == "watching"
        stub: Any = health_pb2_grpc.HealthStub(channel)
        watch = stub.Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING

        echo.signal(number)
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert await echo.says() == "on_drain"
        assert (await watcher.read()).value == "until drained"
        await watcher.done_writing()
        # No new call is taken while the one in flight goes on.
        assert (await refusal_of_late_calls(client, room)).retriable
        echo.answer_hanging()
        assert (await hanging).value == "hang"

        status, said, logged = await echo.ended()
    assert status == 0
    assert said == ["background cancelled", "on_stop"]
    assert [line["event"] for line in logged] == ["started", "draining", "stopped"]


async def refusal_of_late_calls(client: Client, room: Room) -> DoorcardError:
    while True:
        try:
            await client.unary(text("late"), metadata=room.metadata(), timeout=5)
        except grpc.RpcError as error:
            return DoorcardError.from_rpc(error)


async def test_the_drain_is_bounded(room: Room) -> None:
    async with (
        process(room, DOORCARD_DRAIN_SECONDS="0.1") as echo,
        aio.insecure_channel(echo.address) as channel,
    ):
        hanging = Client(channel).unary(text("hang"), metadata=room.metadata(), timeout=20)
        assert await echo.says() == "hanging"
        echo.signal(signal.SIGTERM)
        with pytest.raises(grpc.RpcError):
            await hanging
        assert await echo.says() == "on_drain"
        assert await echo.says() == "background cancelled"
        echo.answer_hanging()
        assert (await echo.ended())[0] == 0


async def test_a_second_signal_ends_it_at_once(room: Room) -> None:
    async with process(room) as echo, aio.insecure_channel(echo.address) as channel:
        hanging = Client(channel).unary(text("hang"), metadata=room.metadata(), timeout=20)
        assert await echo.says() == "hanging"
        echo.signal(signal.SIGTERM)
        assert await echo.says() == "on_drain"
        echo.signal(signal.SIGINT)
        assert (await echo.ended())[0] == 128 + signal.SIGINT
        hanging.cancel()


async def test_a_broken_background_task_ends_the_process_with_status_1(room: Room) -> None:
    async with process(room, "broken") as echo:
        status, said, logged = await echo.ended()
    assert status == 1
    assert said == ["on_drain", "on_stop"]
    failed = next(line for line in logged if line["event"] == "background_failed")
    assert "LookupError" in failed["exception"]


def test_a_bad_setting_stops_the_start_with_status_2(room: Room) -> None:
    done = subprocess.run(
        [sys.executable, str(ECHO)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DOORCARD_LISTEN": "everywhere"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "DOORCARD_LISTEN='everywhere': must be host:port, not 'everywhere'\n"


async def test_a_restarted_process_takes_the_same_ports_back(room: Room) -> None:
    """As under a supervisor that holds them by bound sockets of its own."""
    import socket

    def hold() -> socket.socket:
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        return held

    with hold() as grpc_port, hold() as metrics_port:
        variables = {
            "DOORCARD_LISTEN": f"127.0.0.1:{grpc_port.getsockname()[1]}",
            "DOORCARD_METRICS_LISTEN": f"127.0.0.1:{metrics_port.getsockname()[1]}",
        }
        for _life in range(2):
            async with process(room, **variables) as echo:
                assert echo.address == variables["DOORCARD_LISTEN"]
                async with aio.insecure_channel(echo.address) as channel:
                    assert await health(channel) == health_pb2.HealthCheckResponse.SERVING
                echo.signal(signal.SIGKILL)
                assert (await echo.ended())[0] == -signal.SIGKILL
            echo.ready_file.unlink()
