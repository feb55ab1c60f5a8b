"""What the way into the audit log is tested with: real tables, ledger and archive."""

from tests.contract.history.conftest import archive, archive_template, archive_url
from tests.contract.table.conftest import server, valkey_server
from tests.contract.wallet.conftest import ledger_template, ledger_url, start

__all__ = [
    "archive",
    "archive_template",
    "archive_url",
    "ledger_template",
    "ledger_url",
    "server",
    "start",
    "valkey_server",
]
