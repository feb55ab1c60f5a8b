"""Beat's process: triggers every shard each second and the rest by its schedule.

Several may run: a doubled trigger is harmless. While no worker takes them the queue stays bounded.
"""

import sys
import time
from collections import Counter
from typing import Any, Final, NoReturn

from celery import signals
from celery.apps.beat import Beat
from celery.beat import ScheduleEntry, Scheduler
from doorcard.wallet.v1 import wallet_pb2, wallet_pb2_grpc
from kombu.exceptions import ChannelError

from services.runtime import failpoints, logs, metrics
from services.runtime.channels import call_sync, connect_sync
from services.runtime.clock import monotonic_s
from services.runtime.errors import DoorcardError
from services.runtime.logs import logger
from services.runtime.ready import write_ready
from services.runtime.settings import load
from services.settlement import meters
from services.settlement.app import make_app, quieten_celery
from services.settlement.settings import BeatSettings
from services.settlement.triggers import schedule

BACKLOG_PERIODS: Final = 4
"""Triggers of a queue that may wait: what as many periods of its tasks send."""
LOOK_EVERY_S: Final = 0.5
ASK_AGAIN_S: Final = 1.0


def run() -> NoReturn:
    """Trigger until SIGTERM. Exit status 1 if wallet does not say how many shards there are."""
    settings = load(BeatSettings)
    logs.configure(settings.service, settings.log_level)
    quieten_celery()
    metrics.announce_build(settings.service)
    endpoint = metrics.MetricsEndpoint(settings.metrics_listen)
    shards = ask_shards(settings)
    app = make_app(settings)
    app.conf.beat_schedule = schedule(settings, shards)

    def on_init(**_: Any) -> None:
        write_ready(settings.ready_file, settings.service, metrics=endpoint.port)
        logger.info("started", metrics=endpoint.port, shards=shards)

    def leave_logging_alone(**_: Any) -> None:
        """Being connected is enough: `logs.configure` has done it."""

    signals.setup_logging.connect(leave_logging_alone)
    signals.beat_init.connect(on_init)
    try:
        Beat(app=app, scheduler_cls=BoundedScheduler, quiet=True, redirect_stdouts=False).run()
    finally:
        logger.info("stopped")
    sys.exit(0)


def ask_shards(settings: BeatSettings) -> int:
    """The number of shards, from wallet; asked again while it is away. Exits with status 1 if it
    stays away.
    """
    until_s = monotonic_s() + settings.wallet_wait_seconds
    with connect_sync(settings.wallet_address, settings) as channel:
        wallet = wallet_pb2_grpc.WalletServiceStub(channel)
        while True:
            try:
                answer = call_sync(
                    wallet.GetRoomSettings,
                    wallet_pb2.GetRoomSettingsRequest(),
                    timeout_s=settings.rpc_timeout_seconds,
                )
                return answer.shards
            except DoorcardError as error:
                if monotonic_s() > until_s:
                    logger.error("wallet_did_not_answer", reason=error.reason)
                    sys.exit(1)
            time.sleep(ASK_AGAIN_S)


class BoundedScheduler(Scheduler):  # type: ignore[misc]
    """Celery's scheduler, but a trigger is dropped while too many wait, and lost while the broker
    is away. The next one says the same; keeping them would fill the broker.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._per_period = Counter(each.options["queue"] for each in self.schedule.values())
        self._waiting: dict[str, tuple[float, int]] = {}
        self._away_s: float | None = None
        """When the broker was last tried in vain, on the monotonic clock; None while it answers."""

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send what is due. Never raises."""
        meters.TRIGGERS.labels(entry.task, self._outcome(entry, producer)).inc()

    def _outcome(self, entry: ScheduleEntry, producer: Any) -> str:
        if self._away_s is not None and monotonic_s() - self._away_s < LOOK_EVERY_S:
            return "lost"
        queue = entry.options["queue"]
        try:
            if self._waiting_in(queue) >= BACKLOG_PERIODS * self._per_period[queue]:
                return "dropped"
            failpoints.reach("beat.due")
            with meters.BROKER.timed("publish"):
                self.apply_async(entry, producer=producer, advance=False)
            failpoints.reach("beat.sent")
        except Exception as error:  # whatever it is, beat goes on: the next trigger is as good
            if self._away_s is None:
                logger.warning("broker_away", kind=type(error).__name__)
            self._away_s = monotonic_s()
            return "lost"
        if self._away_s is not None:
            logger.info("broker_back")
        self._away_s = None
        return "sent"

    def _waiting_in(self, queue: str) -> int:
        looked_s, waiting = self._waiting.get(queue, (-LOOK_EVERY_S, 0))
        if monotonic_s() - looked_s < LOOK_EVERY_S:
            return waiting
        try:
            declared = self.connection.default_channel.queue_declare(queue, passive=True)
            waiting = declared.message_count
        except ChannelError:
            # A Redis list that is empty does not exist.
            waiting = 0
        self._waiting[queue] = (monotonic_s(), waiting)
        meters.BACKLOG.set(sum(count for _, count in self._waiting.values()))
        return waiting
