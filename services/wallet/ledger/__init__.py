"""Everything that talks to the ledger's PostgreSQL, and nothing else does.

Every function takes a connection inside a transaction. Locks are taken in one order everywhere:
a shard's progress row, players' accounts by id, shared accounts. Rows of escrow and reservations
change only under their shard's progress row.
"""
