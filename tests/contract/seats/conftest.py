"""What money on its way to a seat is tested with: a real ledger and a real Valkey."""

from tests.contract.table.conftest import server, valkey_server
from tests.contract.wallet.conftest import ledger_template, ledger_url, start

__all__ = ["ledger_template", "ledger_url", "server", "start", "valkey_server"]
