"""The shuffler's own settings."""

from pathlib import Path

from services.runtime.settings import ServiceSettings


class ShufflerSettings(ServiceSettings):
    """The environment of a shuffler, `DOORCARD_*`. None of it reaches the order of a deck."""

    service: str = "shuffler"

    shuffler_seal_keys_file: Path
    """Keys that decks are sealed with (`runtime.sealing.SealKeys.load`); no other service has them.
    """

    shuffler_receipt_keys_file: Path
    """Keys that receipts are signed with (`receipts.ReceiptKeys.load`)."""
