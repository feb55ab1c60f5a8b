"""`python -m services.history.migrate`: bring the archive's schema up, and end."""

from services.history.__main__ import MIGRATIONS
from services.history.settings import HistorySettings
from services.runtime.schema import upgrade
from services.runtime.settings import load

if __name__ == "__main__":
    upgrade(load(HistorySettings).history_database_url.get_secret_value(), MIGRATIONS)
