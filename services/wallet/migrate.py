"""`python -m services.wallet.migrate`: bring the ledger's schema up, and end."""

from services.runtime.schema import upgrade
from services.runtime.settings import load
from services.wallet.opening import MIGRATIONS
from services.wallet.settings import WalletSettings

if __name__ == "__main__":
    upgrade(load(WalletSettings).wallet_database_url.get_secret_value(), MIGRATIONS)
