#!lua flags=allow-oom
-- Writes a table anew while its shard is rebuilt: it has no history before this.
-- KEYS: shard, table, events, deadlines, lobby
-- ARGV: 1 epoch, 2 expected version, 3 expected tag, 4 version, 5 tag, 6 blob, 7 event,
--   8 deadline ms ('' = none), 9 table id, 10 lobby, 11 wake-up channel,
--   12 forget the event if nothing follows it for ms
-- Returns '' when it is done, 'CONFLICT' when the table is another by now, else the shard's state.
local shard = redis.call('HMGET', KEYS[1], 'state', 'epoch')
if shard[1] ~= 'rebuilding' or shard[2] ~= ARGV[1] then
  return shard[1] or 'unopened'
end
local present = redis.call('HMGET', KEYS[2], 'v', 'g')
if present[1] ~= ARGV[2] or present[2] ~= ARGV[3] then
  -- Sent again after a lost connection, it may have been done.
  return present[1] == ARGV[4] and present[2] == ARGV[5] and '' or 'CONFLICT'
end
redis.call('DEL', KEYS[3])
redis.call('XADD', KEYS[3], ARGV[4] .. '-0', 't', ARGV[5], 'e', ARGV[7])
-- As in a commit, for replicas of the release before.
redis.call('XADD', KEYS[3], ARGV[4] .. '-1', 't', '', 'e', '')
redis.call('PEXPIRE', KEYS[3], ARGV[12])
redis.call('HSET', KEYS[2], 'v', ARGV[4], 'g', ARGV[5], 'b', ARGV[6])
if ARGV[8] == '' then
  redis.call('ZREM', KEYS[4], ARGV[9])
else
  redis.call('ZADD', KEYS[4], ARGV[8], ARGV[9])
end
redis.call('HSET', KEYS[5], ARGV[9], ARGV[10])
redis.call('SPUBLISH', ARGV[11], ARGV[9] .. ' ' .. ARGV[4])
return ''
