#!lua
-- Closes a shard; the first reason stays. KEYS: shard. ARGV: reason. Returns 1 when it was not closed.
if redis.call('HGET', KEYS[1], 'state') == 'closed' then
  return 0
end
redis.call('HSET', KEYS[1], 'state', 'closed', 'reason', ARGV[1])
return 1
