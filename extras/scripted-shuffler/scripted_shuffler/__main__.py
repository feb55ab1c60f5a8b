"""`python -m scripted_shuffler SCRIPT.json`: a process with a shuffler's environment."""

import sys
from pathlib import Path

from scripted_shuffler.script import Script
from scripted_shuffler.server import ScriptedShuffler, registering
from services.runtime.sealing import SealKeys
from services.runtime.server import main, run
from services.runtime.settings import load
from services.shuffler.receipts import ReceiptKeys
from services.shuffler.settings import ShufflerSettings


def start(script: Path) -> None:
    """Serve until a signal comes."""
    settings = load(ShufflerSettings)
    shuffler = ScriptedShuffler(
        Script.load(script),
        SealKeys.load(settings.shuffler_seal_keys_file),
        ReceiptKeys.load(settings.shuffler_receipt_keys_file),
    )
    main(run(settings, registering(shuffler)))


if __name__ == "__main__":
    start(Path(sys.argv[1]))
