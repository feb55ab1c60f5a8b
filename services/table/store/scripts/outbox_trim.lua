#!lua flags=allow-oom
-- Forgets entries that are applied and archived, but for the last of them. KEYS: shard, outbox.
-- ARGV: epoch, applied seq, archived seq. Returns verdict, entries left.
local shard = redis.call('HMGET', KEYS[1], 'epoch', 'last_seq', 'applied_seq', 'state')
if not shard[4] or shard[4] == 'opening' then
  local lost = not shard[4] and tonumber(ARGV[1]) > 0
  return {lost and 'REDIS_LOST' or '', 0}
end
if tonumber(shard[1] or '0') > tonumber(ARGV[1]) then
  -- Who tells of an epoch that is over is late.
  return {'', redis.call('XLEN', KEYS[2])}
end
if shard[1] ~= ARGV[1] or not shard[2] then
  return {'EPOCH_DIFFERS', 0}
end
local applied, archived = tonumber(ARGV[2]), tonumber(ARGV[3])
if applied > tonumber(shard[2]) then
  return {'OUTBOX_BEHIND_LEDGER', 0}
end
if applied > tonumber(shard[3]) then
  redis.call('HSET', KEYS[1], 'applied_seq', ARGV[2])
end
local low = string.format('%.0f', math.min(applied, archived))
redis.call('XTRIM', KEYS[2], 'MINID', ARGV[1] .. '-' .. low)
return {'', redis.call('XLEN', KEYS[2])}
