"""Which settings the process of a command reads."""

from collections.abc import Sequence

from services.history.settings import HistorySettings
from services.runtime.settings import ServiceSettings
from services.settlement.settings import BeatSettings, WorkerSettings
from services.showdown.__main__ import ShowdownSettings
from services.shuffler.settings import ShufflerSettings
from services.table.settings import TableSettings
from services.wallet.settings import WalletSettings

SETTINGS: dict[tuple[str, ...], type[ServiceSettings]] = {
    ("services.shuffler",): ShufflerSettings,
    ("services.showdown",): ShowdownSettings,
    ("services.wallet",): WalletSettings,
    ("services.wallet.migrate",): WalletSettings,
    ("services.history",): HistorySettings,
    ("services.history.migrate",): HistorySettings,
    ("services.table",): TableSettings,
    ("services.settlement", "worker"): WorkerSettings,
    ("services.settlement", "beat"): BeatSettings,
}


def settings_of(command: Sequence[str]) -> type[ServiceSettings]:
    """For a container's command, the words after `python -m`."""
    return SETTINGS[tuple(command)]
