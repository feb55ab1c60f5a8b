"""A shard's life: opened, drained through its outbox, closed, rebuilt from the ledger."""
