"""Starts a showdown service: maps its tables, serves. `python -m services.showdown`."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from doorcard.showdown.v1 import showdown_pb2_grpc
from grpc import aio
from pydantic import Field

from services.runtime.logs import logger
from services.runtime.server import Register, main, run
from services.runtime.settings import ServiceSettings, load
from services.showdown.analysts import Analysts
from services.showdown.server import SERVICE_NAME, ShowdownServicer, get_tables_ready
from services.showdown.table_files import share_tables, usual_folder


class ShowdownSettings(ServiceSettings):
    """The environment of a showdown service, `DOORCARD_*`."""

    service: str = "showdown"

    tables_folder: Path = Field(default_factory=usual_folder)
    """Where the ranking tables lie that all processes of the machine share (47 MB); made when
    missing. Where it cannot be written they are kept in memory."""

    analysts: int = Field(default_factory=lambda: max(1, (os.cpu_count() or 1) // 2), ge=1, le=64)
    """Processes for evaluations of many hands and estimates of equity."""

    analyses_max: int = Field(default=8, ge=1, le=1000)
    """Such calls at work at once; the next is told to come again."""


def analysts_of(settings: ShowdownSettings) -> Analysts:
    """The pool of processes; nothing starts yet."""
    return Analysts(settings.analysts, settings.analyses_max, settings.tables_folder)


def registered(settings: ShowdownSettings, analysts: Analysts) -> Register:
    """Adds the servicer to a server; ready only when the tables are."""

    async def register(server: aio.Server) -> Sequence[str]:
        shared = share_tables(settings.tables_folder)
        get_tables_ready()
        logger.info("tables_ready", shared=sorted(shared))
        showdown_pb2_grpc.add_ShowdownServiceServicer_to_server(ShowdownServicer(analysts), server)
        return [SERVICE_NAME]

    return register


async def serve(settings: ShowdownSettings) -> int:
    """Serve until a signal comes; the exit status."""
    analysts = analysts_of(settings)
    return await run(settings, registered(settings, analysts), on_stop=analysts.close)


def start() -> NoReturn:
    """Exit status 2 for settings that are wrong."""
    main(serve(load(ShowdownSettings)))


if __name__ == "__main__":
    start()
