"""TLS from settings: nothing is encrypted unless certificates are given."""

from pathlib import Path

import grpc

from services.runtime.settings import ServiceSettings


def server_credentials(settings: ServiceSettings) -> grpc.ServerCredentials | None:
    """What a server shows, and with `require_client_cert` demands; None without `tls_cert`."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return grpc.ssl_server_credentials(
        [(settings.tls_key.read_bytes(), settings.tls_cert.read_bytes())],
        root_certificates=_bytes_of(settings.tls_ca),
        require_client_auth=settings.require_client_cert,
    )


def client_credentials(settings: ServiceSettings) -> grpc.ChannelCredentials | None:
    """Whom a client believes (`tls_ca`), and its own certificate if it has one; None without
    either.
    """
    if settings.tls_ca is None and settings.tls_cert is None:
        return None
    return grpc.ssl_channel_credentials(
        root_certificates=_bytes_of(settings.tls_ca),
        private_key=_bytes_of(settings.tls_key),
        certificate_chain=_bytes_of(settings.tls_cert),
    )


def _bytes_of(path: Path | None) -> bytes | None:
    return None if path is None else path.read_bytes()
