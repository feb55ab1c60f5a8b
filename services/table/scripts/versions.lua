#!lua flags=no-writes
-- Version and tag of several tables of one shard. KEYS: tables.
local found = {}
for i = 1, #KEYS do
  found[i] = redis.call('HMGET', KEYS[i], 'v', 'g')
end
return found
