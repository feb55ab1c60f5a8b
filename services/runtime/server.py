"""The life of a service's process: start, readiness, work, drain, end.

    async def register(server): ...; return ["doorcard.wallet.v1.WalletService"]
    main(run(settings, register))

On SIGTERM or SIGINT: health says NOT_SERVING, `on_drain` runs (watchers are told to reconnect,
sweeps end), no new call is taken, calls in flight may go on for `drain_seconds`, background tasks
are cancelled, `on_stop` closes what the service opened, exit status 0. A second signal ends the
process at once.
"""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, NoReturn

import uvloop
from grpc import aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from services.runtime import logs, metrics
from services.runtime.auth import KeyFileVerifier
from services.runtime.interceptors import Doorkeeper, Gate
from services.runtime.listen import join_listen, split_listen
from services.runtime.logs import logger
from services.runtime.ready import write_ready
from services.runtime.settings import ServiceSettings
from services.runtime.tls import server_credentials
from services.runtime.wire import SERVER_OPTIONS

Register = Callable[[aio.Server], Awaitable[Sequence[str]]]
"""Adds servicers to the server and returns the full names of their services."""
Step = Callable[[], Awaitable[None]]
Bound = Callable[[str], None]
"""Told host:port as soon as the server has its port."""

GC_EVERY: Final = 50_000
"""Objects made and not yet gone, beyond which the collector looks for cycles. Ours make few, and
looking through all that streams and tables hold costs more than they weigh.
"""
LAST_ANSWERS_S: Final = 0.2
"""After the last call has ended, this long for its answer to reach the wire."""


class Running:
    """A server that answers. `failed` is set when a background task ends by itself."""

    def __init__(
        self,
        settings: ServiceSettings,
        server: aio.Server,
        keeper: Doorkeeper,
        health_servicer: health.aio.HealthServicer,
        ports: tuple[int, int],
    ) -> None:
        self.grpc_port, self.metrics_port = ports
        self.address: Final = join_listen(split_listen(settings.listen)[0], self.grpc_port)
        self.failed: Final = asyncio.Event()
        self._settings = settings
        self._server = server
        self._keeper = keeper
        self._health = health_servicer
        self._background: list[asyncio.Task[None]] = []

    def start_background(self, works: Sequence[Step]) -> None:
        """Run each for the life of the server; one that returns or raises sets `failed`."""
        for work in works:
            self._background.append(asyncio.create_task(self._watched(work)))

    async def drain(self, on_drain: Step | None) -> None:
        """Stop as the module's text says, up to and including the background tasks."""
        drain_s = self._settings.drain_seconds
        await self._health.enter_graceful_shutdown()
        if on_drain is not None:
            await _within(drain_s, on_drain, "on_drain")
        stopping = asyncio.create_task(self._server.stop(drain_s))
        # Health watchers never end by themselves; nobody waits for them.
        idle = asyncio.create_task(self._keeper.idle.wait())
        await asyncio.wait({stopping, idle}, return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
        await asyncio.wait({stopping}, timeout=LAST_ANSWERS_S)
        await self._server.stop(0)
        await stopping
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)

    async def _watched(self, work: Step) -> None:
        try:
            await work()
            logger.error("background_ended")
        except Exception as error:
            logger.error("background_failed", exc_info=error)
        self.failed.set()


@asynccontextmanager
async def serving(
    settings: ServiceSettings,
    register: Register,
    *,
    on_drain: Step | None = None,
    background: Sequence[Step] = (),
    on_stop: Step | None = None,
    on_bound: Bound | None = None,
    gate: Gate | None = None,
) -> AsyncIterator[Running]:
    """A server that answers inside the block and is drained at its end, whatever ends it."""
    keeper = Doorkeeper(_verifier(settings), settings.default_deadline_seconds, gate)
    server = aio.server(interceptors=[keeper], options=list(SERVER_OPTIONS))
    health_servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    endpoint = metrics.MetricsEndpoint(settings.metrics_listen)
    try:
        names = [*await register(server)]
        reflection.enable_server_reflection(
            [*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server
        )
        port = _bind(server, settings)
        await server.start()
        for name in ("", *names):
            await health_servicer.set(name, health_pb2.HealthCheckResponse.SERVING)
        running = Running(settings, server, keeper, health_servicer, (port, endpoint.port))
        if on_bound is not None:
            on_bound(running.address)
        running.start_background(background)
        try:
            yield running
        finally:
            await running.drain(on_drain)
    finally:
        if on_stop is not None:
            await _within(settings.drain_seconds, on_stop, "on_stop")
        endpoint.close()


async def run(
    settings: ServiceSettings,
    register: Register,
    *,
    on_drain: Step | None = None,
    background: Sequence[Step] = (),
    on_stop: Step | None = None,
    on_bound: Bound | None = None,
    gate: Gate | None = None,
) -> int:
    """Serve until a signal comes; the exit status: 0, or 1 if a background task ended by itself."""
    logs.configure(settings.service, settings.log_level)
    metrics.announce_build(settings.service)
    signalled = _signalled()
    async with serving(
        settings,
        register,
        on_drain=on_drain,
        background=background,
        on_stop=on_stop,
        on_bound=on_bound,
        gate=gate,
    ) as running:
        # What was made until now stays: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(GC_EVERY, *gc.get_threshold()[1:])
        write_ready(
            settings.ready_file,
            settings.service,
            grpc=running.grpc_port,
            metrics=running.metrics_port,
        )
        logger.info("started", grpc=running.grpc_port, metrics=running.metrics_port)
        waits = [asyncio.create_task(each.wait()) for each in (signalled, running.failed)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        logger.info("draining")
    logger.info("stopped")
    return int(running.failed.is_set())


def main(run_coroutine: Coroutine[Any, Any, int | None]) -> NoReturn:
    """Run a process to its end under uvloop; exit with what the coroutine returns (None is 0)."""
    sys.exit(uvloop.run(run_coroutine) or 0)


def _signalled() -> asyncio.Event:
    """Set by the first SIGTERM or SIGINT; the second ends the process then and there."""
    event = asyncio.Event()

    def on_signal(number: int) -> None:
        if event.is_set():
            os._exit(128 + number)
        event.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    return event


def _verifier(settings: ServiceSettings) -> KeyFileVerifier | None:
    if settings.auth_keys_file is None:
        return None
    return KeyFileVerifier(settings.auth_keys_file, settings.audience)


def _bind(server: aio.Server, settings: ServiceSettings) -> int:
    credentials = server_credentials(settings)
    if credentials is None:
        return server.add_insecure_port(settings.listen)
    return server.add_secure_port(settings.listen, credentials)


async def _within(limit_s: float, step: Step, name: str) -> None:
    """A step of the end: neither its failure nor its slowness keeps the rest from happening."""
    try:
        async with asyncio.timeout(limit_s):
            await step()
    except Exception as error:
        logger.error("drain_step_failed", step=name, exc_info=error)
