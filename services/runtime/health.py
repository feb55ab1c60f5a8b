"""`python -m services.runtime.health`: asks the process of this container how it is.

Exit status 0: it serves. 1: it does not. 2: settings are wrong. Reads the same settings as the
process; one without gRPC is well while it shows its metrics.
"""

import sys
import urllib.request
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.runtime.listen import join_listen, split_listen
from services.runtime.settings import LOOPBACK, ServiceSettings, load
from services.runtime.tls import client_credentials

TIMEOUT_S: Final = 3.0
EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 (compared, not bound)


def healthy(settings: ServiceSettings) -> bool:
    """Whether the process that listens as the settings say serves."""
    host, port = split_listen(settings.listen)
    if port:
        return _serves(join_listen(_near(host), port), settings)
    host, port = split_listen(settings.metrics_listen)
    return _shows_metrics(join_listen(_near(host), port))


def _near(host: str) -> str:
    return LOOPBACK if host in EVERY_ADDRESS else host


def _serves(address: str, settings: ServiceSettings) -> bool:
    credentials = client_credentials(settings)
    if credentials is None:
        channel = grpc.insecure_channel(address)
    else:
        name = settings.tls_server_name or settings.service
        channel = grpc.secure_channel(
            address, credentials, [("grpc.ssl_target_name_override", name)]
        )
    with channel:
        try:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT_S)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def _shows_metrics(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=TIMEOUT_S) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(0 if healthy(load(ServiceSettings)) else 1)
