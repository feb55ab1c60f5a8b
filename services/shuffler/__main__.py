"""Starts a shuffler: loads the keys, tests the generator, serves. `python -m services.shuffler`."""

import sys
from collections.abc import Sequence
from typing import NoReturn

from doorcard.shuffler.v1 import shuffler_pb2_grpc
from grpc import aio

from services.runtime.sealing import SealKeys
from services.runtime.server import main, run
from services.runtime.settings import load
from services.shuffler.generator import KernelGenerator
from services.shuffler.receipts import ReceiptKeys
from services.shuffler.server import SERVICE_NAME, ShufflerServicer
from services.shuffler.settings import ShufflerSettings


def start() -> NoReturn:
    """Exit status 2 for settings or key files that are wrong.

    A generator that fails at start does not end the process: it answers RNG_UNHEALTHY and shows it
    in its metrics, where an operator finds it.
    """
    settings = load(ShufflerSettings)
    try:
        seal_keys = SealKeys.load(settings.shuffler_seal_keys_file)
        receipt_keys = ReceiptKeys.load(settings.shuffler_receipt_keys_file)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    servicer = ShufflerServicer(seal_keys, receipt_keys, KernelGenerator())

    async def register(server: aio.Server) -> Sequence[str]:
        servicer.test_generator()
        shuffler_pb2_grpc.add_ShufflerServiceServicer_to_server(servicer, server)
        return [SERVICE_NAME]

    main(run(settings, register))


if __name__ == "__main__":
    start()
