#!lua flags=allow-oom
-- A protection that was not needed is given back, if it is this replica that had counted it.
-- KEYS: the player's day. ARGV: decision, replica.
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then
  return redis.call('HDEL', KEYS[1], ARGV[1])
end
return 0
