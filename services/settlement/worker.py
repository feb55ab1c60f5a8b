"""The worker's process: children that run the tasks, and a parent that serves their metrics.

Import only through `services.settlement.__main__`, which prepares the environment that the
Prometheus client reads when it is imported.
"""

import os
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Thread, Timer
from typing import Any, NoReturn

from celery import Celery, signals
from celery.worker import state
from prometheus_client import CollectorRegistry, ProcessCollector, multiprocess

from services.runtime import logs, metrics
from services.runtime.logs import logger
from services.runtime.ready import write_ready
from services.runtime.settings import load
from services.settlement.app import HARD_LIMIT_S, Works, make_app, quieten_celery
from services.settlement.attempts import Attempts
from services.settlement.broker import connect_broker
from services.settlement.drain import Drain
from services.settlement.hearing import Hearing
from services.settlement.letters import LetterWriter
from services.settlement.mails import Mails
from services.settlement.peers import connect_peers
from services.settlement.per_child import PerChild
from services.settlement.post_office import PostOffice
from services.settlement.reconcile import Reconciler
from services.settlement.settings import WorkerSettings
from services.settlement.triggers import QUEUES
from services.settlement.turns import Turns


def run() -> NoReturn:
    """Work until SIGTERM; exit status 0 after it."""
    settings = load(WorkerSettings)
    logs.configure(settings.service, settings.log_level)
    quieten_celery()
    metrics.announce_build(settings.service)
    endpoint = metrics.MetricsEndpoint(settings.metrics_listen, children_registry())
    with tempfile.TemporaryDirectory(prefix="doorcard-turns-") as folder:
        app = make_app(settings)
        works(settings, Path(folder)).add_to(app)
        status = _work(app, settings, endpoint.port)
    endpoint.close()
    logger.info("stopped")
    sys.exit(status)


def works(settings: WorkerSettings, turns_folder: Path) -> Works:
    """The tasks, wired to the services in the settings."""
    peers = PerChild(lambda: connect_peers(settings, settings.rpc_timeout_seconds))
    return Works(
        drain=PerChild(lambda: Drain(peers(), batch=settings.drain_batch)),
        reconciler=PerChild(
            lambda: Reconciler(
                peers(),
                confirm_s=settings.confirm_seconds,
                reservation_age_s=settings.reservation_age_seconds,
            )
        ),
        mails=PerChild(
            lambda: Mails(peers(), LetterWriter(settings.mail_from), lambda: PostOffice(settings))
        ),
        turns=Turns(turns_folder),
        # The folder's name is of this worker alone.
        attempts=Attempts(
            PerChild(lambda: connect_broker(settings.broker_url.get_secret_value())),
            turns_folder.name,
        ),
    )


def children_registry() -> CollectorRegistry:
    """What all children have counted, and the parent's own process."""
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    ProcessCollector(registry=registry)
    return registry


def _work(app: Celery, settings: WorkerSettings, metrics_port: int) -> int:
    stopping = False

    # Celery keeps weak references to receivers: these live as long as this call.
    def on_ready(**_: Any) -> None:
        hearing.heard()
        Thread(target=hearing.run, name="hearing", daemon=True).start()
        write_ready(settings.ready_file, settings.service, metrics=metrics_port)
        logger.info("started", metrics=metrics_port)

    def on_stopping(how: str, **_: Any) -> None:
        nonlocal stopping
        stopping = True
        if how == "Warm":
            # No new tasks; those that run go on, but not for ever: then they are given back.
            limit = Timer(settings.soft_shutdown_seconds, _kill_children, (worker,))
            limit.daemon = True
            limit.start()

    def on_child_end(pid: int, **_: Any) -> None:
        multiprocess.mark_process_dead(pid)  # type: ignore[no-untyped-call]

    def leave_logging_alone(**_: Any) -> None:
        """Being connected is enough: `logs.configure` has done it."""

    def end() -> None:
        if not stopping:
            _kill_children(worker)
            os._exit(1)

    hearing = Hearing(
        PerChild(lambda: connect_broker(settings.broker_url.get_secret_value())),
        sorted(set(QUEUES.values())),
        busy_s=HARD_LIMIT_S,
        busy=lambda: bool(state.reserved_requests),
        end=end,
    )
    signals.task_received.connect(hearing.heard)
    signals.setup_logging.connect(leave_logging_alone)
    signals.worker_ready.connect(on_ready)
    signals.worker_shutting_down.connect(on_stopping)
    signals.worker_process_shutdown.connect(on_child_end)
    worker = app.Worker(
        hostname=f"{settings.service}-{os.getpid()}@doorcard",
        pool="prefork",
        concurrency=settings.worker_children,
        queues=sorted(set(QUEUES.values())),
        optimization="fair",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
    worker.start()
    return 0 if stopping else int(worker.exitcode or 0)


def _kill_children(worker: Any) -> None:
    """End tasks that do not end by themselves; the next trigger does again what they half did.

    Celery's own cold shutdown waits for them, and for children whose last result nobody reads.
    """
    for pid in worker.pool.info["processes"]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
