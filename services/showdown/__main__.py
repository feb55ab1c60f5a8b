"""Starts a showdown service: builds its tables, serves. `python -m services.showdown`."""

from collections.abc import Sequence
from typing import NoReturn

from doorcard.showdown.v1 import showdown_pb2_grpc
from grpc import aio

from services.runtime.server import main, run
from services.runtime.settings import ServiceSettings, load
from services.showdown.server import SERVICE_NAME, ShowdownServicer, build_tables


class ShowdownSettings(ServiceSettings):
    """The environment of a showdown service, `DOORCARD_*`."""

    service: str = "showdown"


async def register(server: aio.Server) -> Sequence[str]:
    """Add the servicer; ready only when the tables are built."""
    build_tables()
    showdown_pb2_grpc.add_ShowdownServiceServicer_to_server(ShowdownServicer(), server)
    return [SERVICE_NAME]


def start() -> NoReturn:
    """Exit status 2 for settings that are wrong."""
    main(run(load(ShowdownSettings), register))


if __name__ == "__main__":
    start()
