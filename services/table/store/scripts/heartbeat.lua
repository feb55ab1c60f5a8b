#!lua flags=allow-oom
-- Says that a replica is alive. KEYS: replicas, addresses.
-- ARGV: replica id, its address, forget others after ms, dead after ms.
-- Returns Redis time in microseconds, then id, last beat in ms and address of each live replica.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(ms)
  return string.format('%.0f', ms)
end
redis.call('ZADD', KEYS[1], text(now), ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local gone = redis.call('ZRANGE', KEYS[1], '-inf', text(now - tonumber(ARGV[3])), 'BYSCORE',
  'LIMIT', 0, 1000)
if #gone > 0 then
  redis.call('ZREM', KEYS[1], unpack(gone))
  redis.call('HDEL', KEYS[2], unpack(gone))
end
local told = {text(time[1] * 1000000 + time[2])}
local live = redis.call('ZRANGE', KEYS[1], text(now - tonumber(ARGV[4])), '+inf', 'BYSCORE',
  'WITHSCORES')
for i = 1, #live, 2 do
  if tonumber(live[i + 1]) > now then
    -- Beaten before the clock was set back: who is dead since would live on for as long.
    redis.call('ZADD', KEYS[1], text(now), live[i])
    live[i + 1] = text(now)
  end
  told[#told + 1] = live[i]
  told[#told + 1] = live[i + 1]
  told[#told + 1] = redis.call('HGET', KEYS[2], live[i]) or ''
end
return told
