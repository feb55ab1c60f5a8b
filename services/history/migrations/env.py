"""Alembic's entry for the archive's schema."""

from services.runtime.schema import run_in_alembic

run_in_alembic()
