#!lua flags=no-writes
-- Version and tag of several tables of one shard, at one moment. KEYS: shard, tables.
-- Returns the shard's state and epoch, then {version, tag} of each table.
local shard = redis.call('HMGET', KEYS[1], 'state', 'epoch')
local found = {shard[1] or '', shard[2] or '0'}
for i = 2, #KEYS do
  found[i + 1] = redis.call('HMGET', KEYS[i], 'v', 'g')
end
return found
