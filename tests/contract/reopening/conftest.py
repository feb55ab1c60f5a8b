"""What reopening is tested with: a real ledger and a real Valkey for each test."""

from tests.contract.wallet.conftest import ledger_template, ledger_url, start

__all__ = ["ledger_template", "ledger_url", "start"]
