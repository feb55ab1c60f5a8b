#!lua
-- Takes one token out of a bucket, kept as the time at which the bucket will be full again.
-- KEYS: bucket. ARGV: 1 microseconds until one token is there again, 2 tokens of a full bucket.
-- Returns 0, or the milliseconds until there is a token.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local refill, size = tonumber(ARGV[1]), tonumber(ARGV[2])
local full_at = tonumber(redis.call('GET', KEYS[1]) or '0')
if full_at < now or full_at > now + refill * size then
  -- Later than any bucket fills: the clock was set back, which nobody is kept waiting for.
  full_at = now
end
full_at = full_at + refill
local ahead = full_at - now
if ahead > refill * size then
  return math.ceil((ahead - refill * size) / 1000)
end
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', math.ceil(ahead / 1000))
return 0
