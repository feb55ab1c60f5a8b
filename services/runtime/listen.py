"""`host:port` texts."""

from typing import Final

PORT_MAX: Final = 65_535


def split_listen(listen: str) -> tuple[str, int]:
    """("127.0.0.1", 7101) of "127.0.0.1:7101"; IPv6 hosts in brackets. Raises ValueError saying
    what is wrong.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not host:
        raise ValueError(f"must be host:port, not {listen!r}")
    if not (port.isascii() and port.isdigit() and int(port) <= PORT_MAX):
        raise ValueError(f"port must be 0 to {PORT_MAX}, not {port!r}")
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], int(port)
    if ":" in host:
        raise ValueError(f"an IPv6 host goes in brackets: [{host}]:{port}")
    return host, int(port)


def join_listen(host: str, port: int) -> str:
    """The opposite of `split_listen`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
