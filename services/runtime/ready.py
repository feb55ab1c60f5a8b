"""The ready file: how a process tells whoever started it that it answers, and on which ports."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Ready:
    """Content of the file."""

    service: str
    pid: int
    grpc: int
    """Port; 0 for a process without gRPC."""
    metrics: int
    """Port; 0 for a process without metrics."""


def write_ready(path: Path | None, service: str, *, grpc: int = 0, metrics: int = 0) -> None:
    """Write the file for this process, whole or not at all; None writes nothing."""
    if path is None:
        return
    content = json.dumps(asdict(Ready(service, os.getpid(), grpc, metrics)))
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(content, encoding="utf-8")
    draft.replace(path)


def read_ready(path: Path) -> Ready | None:
    """What the file says; None while there is none. Raises ValueError if it is not one."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        return Ready(**json.loads(text))
    except TypeError as error:
        raise ValueError(f"{path} is not a ready file: {error}") from error
