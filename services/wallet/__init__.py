"""The double-entry ledger: players' money, escrow of sittings, the house, rake schedules."""
