"""What Prometheus reads: one registry, the metrics that all services share, and the endpoint.

A service declares its own metrics beside the code that moves them, with `registry=REGISTRY`. No
table or player id is ever a label.
"""

import platform
import socket
import socketserver
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from itertools import accumulate
from typing import Any, Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

from services.runtime.listen import split_listen

# A second series for every counter would say nothing that process_start_time_seconds does not.
disable_created_metrics()  # type: ignore[no-untyped-call]

REGISTRY: Final = CollectorRegistry(auto_describe=True)
ProcessCollector(registry=REGISTRY)
PlatformCollector(registry=REGISTRY)
GCCollector(registry=REGISTRY)

ACTION_BUCKETS: Final = (
    0.0005, 0.001, 0.002, 0.005, 0.010, 0.020, 0.030, 0.040, 0.050, 0.060, 0.080, 0.100,
    0.150, 0.250, 0.500, 1.0, 2.5, 5.0,
)  # fmt: skip
"""Seconds. Close together around 50 ms, where the objective is (99.9 % of actions below it)."""


class Tally(Histogram):
    """A histogram that one event loop observes, several times for each action: without locks, and
    not for processes that share their metrics.
    """

    def _metric_init(self) -> None:
        super()._metric_init()
        self._counts = [0] * len(self._upper_bounds)
        self._total = 0.0

    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:  # noqa: ARG002
        """One more."""
        self._counts[bisect_left(self._upper_bounds, amount)] += 1
        self._total += amount

    def _child_samples(self) -> Iterable[Sample]:
        counted = list(accumulate(self._counts))
        for bound, count in zip(self._upper_bounds, counted, strict=True):
            le: str = floatToGoString(bound)  # type: ignore[no-untyped-call]
            yield Sample("_bucket", {"le": le}, float(count), None, None)
        yield Sample("_count", {}, float(counted[-1]), None, None)
        yield Sample("_sum", {}, self._total, None, None)


ACTION_DURATION: Final = Tally(
    "doorcard_action_duration_seconds",
    "Time of an action at the server, by stage: queue, rules, shuffler, showdown, wallet, commit, "
    "total.",
    ["action", "stage", "outcome"],
    buckets=ACTION_BUCKETS,
    registry=REGISTRY,
)

CALL_BUCKETS: Final = (
    0.001, 0.0025, 0.005, 0.010, 0.025, 0.050, 0.100, 0.250, 0.500, 1.0, 2.5, 5.0, 10.0,
)  # fmt: skip
_METHOD: Final = ["grpc_type", "grpc_service", "grpc_method"]

GRPC_STARTED: Final = Counter(
    "grpc_server_started",
    "Calls started on the server; grpc_type batched: a call in a message with others.",
    _METHOD,
    registry=REGISTRY,
)
GRPC_HANDLED: Final = Counter(
    "grpc_server_handled",
    "Calls ended on the server, by status code.",
    [*_METHOD, "grpc_code"],
    registry=REGISTRY,
)
GRPC_HANDLING: Final = Histogram(
    "grpc_server_handling_seconds",
    "Time from the start of a call to its end; for streams, their whole life.",
    _METHOD,
    buckets=CALL_BUCKETS,
    registry=REGISTRY,
)

GRPC_CLIENT_STARTED: Final = Counter(
    "grpc_client_started",
    "Calls of other services begun; grpc_type batched: a call in a message with others.",
    _METHOD,
    registry=REGISTRY,
)
GRPC_CLIENT_HANDLED: Final = Counter(
    "grpc_client_handled",
    "Calls of other services ended, by status code as the caller saw it.",
    [*_METHOD, "grpc_code"],
    registry=REGISTRY,
)
GRPC_CLIENT_HANDLING: Final = Histogram(
    "grpc_client_handling_seconds",
    "Time of a call of another service, each try for itself; for streams, their whole life.",
    _METHOD,
    buckets=CALL_BUCKETS,
    registry=REGISTRY,
)

DEPENDENCY_DURATION: Final = Histogram(
    "doorcard_dependency_duration_seconds",
    "Time of an exchange with a part that is not ours: redis, postgres, smtp, broker; its count by "
    "outcome is rate and errors.",
    ["dependency", "operation", "outcome"],
    buckets=CALL_BUCKETS,
    registry=REGISTRY,
)


class Dependency:
    """Times what a part that is not ours is asked to do: `with redis.timed("exchange"): ...`."""

    def __init__(self, name: str, *operations: str) -> None:
        """Each operation shows at once, at 0: what never failed is seen not to have failed."""
        self._timers = {
            (operation, outcome): DEPENDENCY_DURATION.labels(name, operation, outcome)
            for operation in operations
            for outcome in ("ok", "failed")
        }

    def observe(self, operation: str, outcome: str, took_s: float) -> None:
        """One exchange; outcome: ok or failed."""
        self._timers[operation, outcome].observe(took_s)

    @contextmanager
    def timed(
        self, operation: str, *, not_its_fault: tuple[type[BaseException], ...] = ()
    ) -> Iterator[None]:
        """Time the block; what it raises, but for `not_its_fault`, is the dependency's failure."""
        began_s, outcome = time.perf_counter(), "ok"
        try:
            yield
        except not_its_fault:
            raise
        except Exception:
            outcome = "failed"
            raise
        finally:
            self.observe(operation, outcome, time.perf_counter() - began_s)


BUILD_INFO: Final = Gauge(
    "doorcard_build_info",
    "Always 1; the labels say what runs.",
    ["service", "version", "python", "grpc"],
    multiprocess_mode="max",
    registry=REGISTRY,
)


def announce_build(service: str) -> None:
    """Set `doorcard_build_info`; in a checkout that is not installed the version is "source"."""
    try:
        version = metadata.version("doorcard")
    except metadata.PackageNotFoundError:
        version = "source"
    BUILD_INFO.labels(service, version, platform.python_version(), metadata.version("grpcio")).set(
        1
    )


CLOSE_POLL_S: Final = 0.1


class MetricsEndpoint:
    """`GET /metrics` over HTTP in a thread of its own: a busy event loop can still be seen."""

    def __init__(self, listen: str, registry: CollectorRegistry = REGISTRY) -> None:
        self._server = _ReusePortServer(split_listen(listen), _page_of(registry))
        self.port: Final = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(CLOSE_POLL_S,), name="metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop answering and give the port back."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _ReusePortServer(ThreadingHTTPServer):
    # A supervisor keeps the port bound, without listening, across restarts of the service.
    allow_reuse_port = True
    daemon_threads = True

    def __init__(self, address: tuple[str, int], page: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, page)

    def server_bind(self) -> None:
        # HTTPServer's own looks the host up in DNS for a name that nothing here uses.
        socketserver.TCPServer.server_bind(self)


def _page_of(registry: CollectorRegistry) -> type[BaseHTTPRequestHandler]:
    class Page(BaseHTTPRequestHandler):
        timeout = 10  # seconds; a client that sends nothing does not keep a thread

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(404)
                return
            body = generate_latest(registry)
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE_LATEST)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class's name)
            """Scrapes are not news, and the default line holds the peer's address."""

    return Page
