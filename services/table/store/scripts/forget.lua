#!lua flags=allow-oom
-- Takes a table that is not there any more out of the lobby, while its shard is rebuilt.
-- KEYS: shard, table, lobby. ARGV: epoch, table id.
-- Returns '' when it is done, 'CONFLICT' when the table is there, else the shard's state.
local shard = redis.call('HMGET', KEYS[1], 'state', 'epoch')
if shard[1] ~= 'rebuilding' or shard[2] ~= ARGV[1] then
  return shard[1] or 'unopened'
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 'CONFLICT'
end
redis.call('HDEL', KEYS[3], ARGV[2])
return ''
