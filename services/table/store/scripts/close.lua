#!lua flags=allow-oom
-- Closes a shard; the first reason stays. KEYS: shard. ARGV: reason, the epoch that lost something.
-- What an earlier epoch lost is no concern of a shard that was rebuilt since.
-- Returns 1 when this closed it.
local shard = redis.call('HMGET', KEYS[1], 'state', 'epoch')
if shard[1] == 'closed' or tonumber(shard[2] or '0') > tonumber(ARGV[2]) then
  return 0
end
local time = redis.call('TIME')
redis.call('HSET', KEYS[1], 'state', 'closed', 'reason', ARGV[1],
  'closed_ms', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
return 1
