#!lua flags=allow-oom
-- A write of its own, for Redis' replicas to confirm what was written before it on other connections.
-- KEYS: fence. ARGV: anything.
redis.call('SET', KEYS[1], ARGV[1])
