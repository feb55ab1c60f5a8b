"""Who watches a table here and how every version reaches him; which replica owns which shard."""
