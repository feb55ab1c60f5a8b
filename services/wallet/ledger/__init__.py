"""Everything that talks to the ledger's PostgreSQL, and nothing else does.

Every function takes a connection inside a transaction. Locks are taken in one order everywhere:
a shard's progress row, players' accounts by id, shared accounts. Rows of escrow and reservations
change only under their shard's progress row.

Whoever draws a number for a row of journal or accounts has locked a row before, or has asked for
the id of its transaction: sealing (`seals`) tells by that id when nobody can still put in a row
with a lower number.
"""
