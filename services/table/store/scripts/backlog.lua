#!lua flags=no-writes
-- How far the ledger is behind. KEYS: shard, outbox.
-- Returns age in ms of the oldest entry after the applied one (0 if none), bytes held, entries held.
local shard = redis.call('HMGET', KEYS[1], 'epoch', 'applied_seq', 'bytes')
if not shard[2] then
  return {0, 0, 0}
end
local first = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
local bytes = 0
if first then
  bytes = tonumber(shard[3]) - tonumber(first[2][12])
end
local open = redis.call('XRANGE', KEYS[2], '(' .. shard[1] .. '-' .. shard[2], '+', 'COUNT', 1)[1]
local age = 0
if open then
  local time = redis.call('TIME')
  age = math.max(0, time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(open[2][10]))
end
return {age, bytes, redis.call('XLEN', KEYS[2])}
