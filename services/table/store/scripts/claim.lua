#!lua flags=allow-oom
-- Claims what is due by moving its deadline a lease ahead. KEYS: shard, deadlines.
-- ARGV: at most so many, lease ms, ms overdue at least. Returns table ids; nothing while the shard
-- is not open.
if redis.call('HGET', KEYS[1], 'state') ~= 'open' then
  return {}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local due = redis.call('ZRANGE', KEYS[2], '-inf', string.format('%.0f', now - tonumber(ARGV[3])),
  'BYSCORE', 'LIMIT', 0, ARGV[1])
if #due == 0 then
  return due
end
local score = string.format('%.0f', now + tonumber(ARGV[2]))
local moved = {}
for i = 1, #due do
  moved[2 * i - 1] = score
  moved[2 * i] = due[i]
end
redis.call('ZADD', KEYS[2], unpack(moved))
return due
