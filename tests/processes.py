"""Services as processes of their own, for tests that kill them."""

import os
import subprocess
import sys
import time
from pathlib import Path

from services.runtime.ready import Ready, read_ready
from tests.conftest import Room

READY_S = 30.0
POLL_S = 0.02


class ServiceProcess:
    """`python -m services.<name>` on free ports, believing the room's tokens.

    variables: its environment without the prefix, besides what every service needs. label: tells
    it from others of the same service.
    """

    def __init__(self, room: Room, name: str, *, label: str = "", **variables: str) -> None:
        self._ready_file: Path = room.folder / f"{name}{label}.ready.json"
        self._ready_file.unlink(missing_ok=True)
        own = {
            "LISTEN": "127.0.0.1:0",
            "METRICS_LISTEN": "127.0.0.1:0",
            "READY_FILE": str(self._ready_file),
            "AUTH_KEYS_FILE": str(room.auth_keys_file),
            **variables,
        }
        plain = {key: value for key, value in os.environ.items() if "DOORCARD_" not in key}
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"services.{name}"],
            env=plain | {f"DOORCARD_{key}": value for key, value in own.items()},
            stderr=subprocess.DEVNULL,
        )

    def ready(self) -> Ready:
        """Its ports, as soon as it serves."""
        end_s = time.monotonic() + READY_S
        while (found := read_ready(self._ready_file)) is None:
            assert self.process.poll() is None, "it ended before it was ready"
            assert time.monotonic() < end_s, "it does not get ready"
            time.sleep(POLL_S)
        return found

    def kill(self) -> None:
        """As kill -9."""
        self.process.kill()
        self.process.wait()

    def terminate(self) -> int:
        """As SIGTERM; the exit status."""
        self.process.terminate()
        return self.process.wait(READY_S)
