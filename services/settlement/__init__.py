"""Celery: drains finished hands into ledger and archive, reconciles, sends histories by e-mail."""
