"""Starts the worker or beat. `python -m services.settlement worker|beat`."""

import os
import sys
import tempfile
from typing import NoReturn

USAGE = "usage: python -m services.settlement worker|beat"


def start(arguments: list[str]) -> NoReturn:
    """Exit status 2 for anything but one of the two words, or for settings that are wrong."""
    match arguments:
        case ["worker"]:
            work()
        case ["beat"]:
            beat()
    print(USAGE, file=sys.stderr)
    sys.exit(2)


def work() -> NoReturn:
    """The worker. Its children's counts are added up through files in a folder, whose name must be
    known when the Prometheus client is imported.
    """
    with tempfile.TemporaryDirectory(prefix="doorcard-meters-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        from services.settlement import worker  # noqa: PLC0415

        worker.run()


def beat() -> NoReturn:
    """Beat."""
    from services.settlement import beat  # noqa: PLC0415

    beat.run()


if __name__ == "__main__":
    start(sys.argv[1:])
