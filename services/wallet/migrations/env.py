"""Alembic's entry to the ledger's schema."""

from services.runtime.schema import run_in_alembic

run_in_alembic()
