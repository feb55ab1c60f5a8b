"""Ports that stay ours: found free, then held while the process that listens on them is away.

A held port is bound but does not listen, so that clients of a service that is being restarted are
refused at once instead of meeting a stranger. Services bind it beside us by SO_REUSEPORT; embedded
databases cannot do that and bind it by SO_REUSEADDR.
"""

import errno
import socket
from typing import Final

from services.runtime.settings import LOOPBACK

_TRIES: Final = 20


class HeldPorts:
    """The ports of one room, on the loopback interface."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def for_service(self, preferred: int = 0) -> int:
        """A port for gRPC or metrics: `preferred` if nobody has it, else any free one."""
        return self._hold(preferred, socket.SO_REUSEPORT)

    def for_database(self, preferred: int = 0) -> int:
        """A port for a server that sets SO_REUSEADDR alone (Valkey, PostgreSQL, asyncio)."""
        return self._hold(preferred, socket.SO_REUSEADDR)

    def release(self) -> None:
        """Give all of them back."""
        while self._held:
            self._held.pop().close()

    def _hold(self, preferred: int, shared_by: int) -> int:
        for port in (preferred, *[0] * _TRIES):
            held = _bound(port, shared_by)
            if held is not None:
                self._held.append(held)
                return int(held.getsockname()[1])
        raise OSError(errno.EADDRINUSE, "no free port on the loopback interface")


def _bound(port: int, shared_by: int) -> socket.socket | None:
    """A socket bound to a port that was nobody's, or None.

    Whoever else holds a port in this way shares it by the same option, and would share it with us
    too; so it is first bound without. Connections of an earlier life that linger do not count for
    services, whose ports are known to clients; a database's port is known to nobody and may change.
    """
    if shared_by == socket.SO_REUSEPORT:
        first = _bind(port, socket.SO_REUSEADDR)
        if first is None:
            return None
        port = int(first.getsockname()[1])
        first.close()
        return _bind(port, shared_by)
    held = _bind(port, None)
    if held is not None:
        held.setsockopt(socket.SOL_SOCKET, shared_by, 1)
    return held


def _bind(port: int, option: int | None) -> socket.socket | None:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if option is not None:
            bound.setsockopt(socket.SOL_SOCKET, option, 1)
        bound.bind((LOOPBACK, port))
    except OSError as error:
        bound.close()
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        return None
    return bound
