"""Keeps the room's processes running: starts them in stages, restarts the dead, stops all in order.

Every process has a process group of its own, so that Ctrl-C reaches only us, and a leash, so that
it cannot outlive us however we die. Use it from the main thread: the leash is tied to the starting
thread. In a process that also speaks gRPC use it on asyncio's own loop: uvloop starts a process by
a fork that runs gRPC's fork handlers, and beside open channels about one child in ten then dies of
SIGSEGV before it is anything.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Final

from services.local import leash
from services.runtime.ready import read_ready
from services.runtime.settings import ENV_PREFIX

LOOK_S: Final = 0.02
BACKOFF_FIRST_S: Final = 0.1
BACKOFF_MAX_S: Final = 5.0
STEADY_S: Final = 20.0
"""After so long a life the next death counts as the first."""
DEATHS_MAX: Final = 20
"""After so many deaths in a row a process is given up."""
LOG_BYTES_MAX: Final = 16 * 1024 * 1024
"""A longer log is put aside (one is kept) when the process starts."""
LAST_LINES: Final = 12

Probe = Callable[[int], Awaitable[bool]]
"""Whether the process of this id answers."""


@dataclass(frozen=True, slots=True)
class Program:
    """A process to be kept running."""

    name: str
    """Unique in the room."""
    command: tuple[str, ...]
    ready: Probe
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to our own environment, of which `DOORCARD_*` is left out."""
    cwd: Path | None = None
    user: str = ""
    """Run as this user; only if we are root."""
    stop_signal: signal.Signals = signal.SIGTERM
    """Asks it to end, and is what it gets when we die."""
    start_s: float = 30.0
    """Longest time until it is ready."""
    stop_s: float = 20.0
    """Longest time to end by itself."""


class State(StrEnum):
    """Where a process stands."""

    STARTING = "starting"
    READY = "ready"
    WAITING = "waiting"
    """Dead; will be started again."""
    GIVEN_UP = "given up"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happened to a process."""

    name: str
    state: State
    detail: str = ""
    """How it ended, for the states that follow an end."""


class StartFailedError(Exception):
    """A process did not become ready; says which, how it ended, and the last lines of its log."""


def by_file(path: Path) -> Probe:
    """Ready when `path` is a ready file of this very process."""

    async def probe(pid: int) -> bool:
        found = read_ready(path)
        return found is not None and found.pid == pid

    return probe


class Supervisor:
    """The processes of one room.

    log_folder: gets `<name>.log` of each. on_change: told of every change of state.
    inherit: file descriptors that every process keeps open (the lock of the data folder).
    """

    def __init__(
        self,
        log_folder: Path,
        *,
        on_change: Callable[[Change], None] = lambda _change: None,
        inherit: Sequence[int] = (),
    ) -> None:
        self._log_folder = log_folder
        self._on_change = on_change
        self._inherit = tuple(inherit)
        self._stages: list[list[_Kept]] = []

    async def __aenter__(self) -> "Supervisor":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, *programs: Program) -> None:
        """Start a stage: all of them together, ready on return. It is stopped before earlier
        stages.

        Raises StartFailedError; those already started stay and are stopped by `stop`.
        """
        self._log_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        stage = [
            _Kept(program, self._log_folder / f"{program.name}.log", self._on_change, self._inherit)
            for program in programs
        ]
        self._stages.append(stage)
        await asyncio.gather(*(kept.begin() for kept in stage))

    async def stop(self) -> None:
        """Stop everything, last stage first; nothing is left running."""
        while self._stages:
            await asyncio.gather(*(kept.end() for kept in self._stages[-1]))
            self._stages.pop()

    def pid(self, name: str) -> int:
        """Process id of the present life of `name`; 0 between two lives. Raises KeyError."""
        return self._kept(name).pid

    def state(self, name: str) -> State:
        """Raises KeyError."""
        return self._kept(name).state

    def restarts(self, name: str) -> int:
        """How often it was started again. Raises KeyError."""
        return self._kept(name).restarts

    def names(self) -> list[str]:
        """All processes, in the order of their start."""
        return [kept.program.name for stage in self._stages for kept in stage]

    def _kept(self, name: str) -> "_Kept":
        for stage in self._stages:
            for kept in stage:
                if kept.program.name == name:
                    return kept
        raise KeyError(name)


class _Kept:
    """One program over all its lives."""

    def __init__(
        self,
        program: Program,
        log: Path,
        on_change: Callable[[Change], None],
        inherit: tuple[int, ...],
    ) -> None:
        self.program = program
        self.state = State.STARTING
        self.restarts = 0
        self._log = log
        self._on_change = on_change
        self._inherit = inherit
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        process = self._process
        return 0 if process is None or process.returncode is not None else process.pid

    async def begin(self) -> None:
        """First life, until ready; from then on it is kept."""
        log_from = self._spawn_log_size()
        await self._spawn()
        if not await self._becomes_ready():
            ended = await self._finish()
            self._change(State.GIVEN_UP, ended)
            raise StartFailedError(f"{self.program.name} {ended}\n{self._last_lines(log_from)}")
        self._change(State.READY)
        self._keeper = asyncio.create_task(self._keep())

    async def end(self) -> None:
        """Ask, wait, insist."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(self.program.stop_signal)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), self.program.stop_s)
        if process is not None:
            await self._finish()
        self._change(State.STOPPED)

    async def _keep(self) -> None:
        deaths, born_s = 0, time.monotonic()
        while True:
            if self._process is None:
                raise RuntimeError("kept without a process")
            await self._process.wait()
            ended = await self._finish()
            deaths = 1 if time.monotonic() - born_s > STEADY_S else deaths + 1
            if deaths > DEATHS_MAX:
                self._change(State.GIVEN_UP, ended)
                return
            self._change(State.WAITING, ended)
            await asyncio.sleep(min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** (deaths - 1)))
            born_s = time.monotonic()
            self.restarts += 1
            await self._spawn()
            if await self._becomes_ready():
                self._change(State.READY)
            else:
                self._kill()

    async def _spawn(self) -> None:
        program = self.program
        self._change(State.STARTING)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(ENV_PREFIX)}
        environment |= {**program.env, "LEASH_STARTER": str(os.getpid())}
        with self._open_log() as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                leash.__file__,
                str(int(program.stop_signal)),
                program.user or "-",
                *program.command,
                env=environment,
                cwd=program.cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=self._inherit,
            )

    async def _becomes_ready(self) -> bool:
        process = self._process
        late_s = time.monotonic() + self.program.start_s
        while process is not None and process.returncode is None and time.monotonic() < late_s:
            if await self.program.ready(process.pid):
                return True
            await asyncio.sleep(LOOK_S)
        return False

    async def _finish(self) -> str:
        """The process and whatever it left behind in its group are gone; says how it ended."""
        if self._process is None:
            raise RuntimeError("finished without a process")
        alive = self._process.returncode is None
        self._kill()
        status = await self._process.wait()
        if alive:
            return "did not answer in time and was killed"
        if status < 0:
            return f"was ended by {signal.Signals(-status).name}"
        return f"ended with status {status}"

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def _change(self, state: State, detail: str = "") -> None:
        self.state = state
        self._on_change(Change(self.program.name, state, detail))

    def _open_log(self) -> BinaryIO:
        if self._spawn_log_size() > LOG_BYTES_MAX:
            self._log.replace(self._log.with_suffix(".log.1"))
        return self._log.open("ab")

    def _spawn_log_size(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0

    def _last_lines(self, log_from: int) -> str:
        with self._log.open("rb") as log:
            size = self._spawn_log_size()
            log.seek(max(log_from if size >= log_from else 0, size - 8192))
            return "\n".join(log.read().decode("utf-8", "replace").splitlines()[-LAST_LINES:])
