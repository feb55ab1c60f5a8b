#!lua
-- Says that a replica is alive. KEYS: replicas. ARGV: replica id, forget others after ms.
-- Returns Redis time in microseconds, as text.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - tonumber(ARGV[2])))
return string.format('%.0f', time[1] * 1000000 + time[2])
