"""Worker and beat as processes under test."""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.contract.settlement.fakes import FakeRoom

DEADLINE_S = 30.0


def wait_until(true: Callable[[], bool], what: str) -> None:
    until_s = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < until_s, f"waited in vain until {what}"
        time.sleep(0.01)


@dataclass
class Process:
    """A process of settlement under test."""

    popen: subprocess.Popen[bytes]
    ready_file: Path
    log_file: Path

    def wait_ready(self) -> None:
        def ready() -> bool:
            assert self.popen.poll() is None, self.log_file.read_text()
            return self.ready_file.exists()

        wait_until(ready, "the process is ready")

    def metrics(self) -> dict[str, float]:
        """name and label values, those by label -> value."""
        port = json.loads(self.ready_file.read_text())["metrics"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            families = text_string_to_metric_families(answer.read().decode())
            return {
                " ".join([sample.name, *(value for _, value in sorted(sample.labels.items()))]): (
                    sample.value
                )
                for family in families
                for sample in family.samples
            }

    def children(self) -> list[int]:
        path = Path(f"/proc/{self.popen.pid}/task/{self.popen.pid}/children")
        return [int(each) for each in path.read_text().split()]

    def kill_child(self, peer: str, server: str) -> None:
        """SIGKILL for the child at the other end of a connection to `server` (host:port), by gRPC's
        name of it.
        """
        socket = f"socket:[{inode_of(peer, server)}]"
        for pid in self.children():
            with suppress(OSError):
                if socket in [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()]:
                    os.kill(pid, signal.SIGKILL)
                    return
        raise AssertionError("none of the children has that connection")

    def stop(self) -> int:
        self.popen.send_signal(signal.SIGTERM)
        return self.popen.wait(DEADLINE_S)

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()


def inode_of(near: str, far: str) -> int:
    """Of the socket that connects two ports of this machine (names that end in :port).

    Both ports: one alone is also that of connections elsewhere, and of those that are over.
    """
    ports = [f":{int(each.rpartition(':')[2]):04X}" for each in (near, far)]
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if all(end.endswith(port) for end, port in zip(fields[1:3], ports, strict=True)):
                return int(fields[9])
    raise AssertionError("there is no such connection")


Start = Callable[..., Process]


def drained(room: FakeRoom, shard: int, count: int) -> Callable[[], bool]:
    return lambda: room.tables.told.get(shard) == (count, count)
