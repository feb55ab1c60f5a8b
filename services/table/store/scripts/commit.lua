#!lua
-- One commit of one table. Everything is checked before the first write.
-- KEYS: shard, table, events, deadlines, outbox, lobby
-- ARGV: 1 epoch, 2 expected version ('' = the table must not exist), 3 expected tag, 4 version,
--   5 tag, 6 blob, 7 event, 8 deadline ms ('' = none), 9 table id, 10 lobby ('' = unchanged),
--   11 not before ms (0 = at any time), 12 drop events below this version ('' = none, 'all'),
--   13 wake-up channel, 14 forget the events if nothing comes for ms ('' = never), 15 how many who
--   listen to that channel need not be told (1: it is us), then for each outbox entry: entry id,
--   sealed payload
-- Versions are compared and stored as the texts they come as; Lua's numbers would spoil them.
local shard = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'reason', 'last_seq', 'last_id', 'bytes')
if shard[1] ~= 'open' then
  return {'SHARD', shard[1] or '', shard[3] or ''}
end
local epoch = shard[2]
if epoch ~= ARGV[1] then
  return {'EPOCH', epoch}
end

local present = redis.call('HMGET', KEYS[2], 'v', 'g')
local version, tag = present[1] or '', present[2] or ''
if version ~= ARGV[2] or tag ~= ARGV[3] then
  local ours = version == ARGV[4] and tag == ARGV[5]
  if not ours then
    -- Sent again after a lost connection, it may have been done, and others have gone on since.
    local record = redis.call('XRANGE', KEYS[3], ARGV[4] .. '-0', ARGV[4] .. '-0')[1]
    ours = record ~= nil and record[2][2] == ARGV[5]
  end
  if ours then
    return {'DONE'}
  end
  return {'CONFLICT', version, tag, redis.call('HGET', KEYS[2], 'b') or ''}
end

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
if tonumber(ARGV[11]) > tonumber(now) then
  return {'EARLY', now}
end

local seq, last_id, bytes = tonumber(shard[4]), shard[5], tonumber(shard[6])
if #ARGV > 15 then
  local last = redis.call('XREVRANGE', KEYS[5], '+', '-', 'COUNT', 1)[1]
  local held = last and last[1] or ''
  local told = seq > 0 and epoch .. '-' .. string.format('%.0f', seq) or ''
  if held ~= told then
    return {'BROKEN', 'OUTBOX_BROKEN'}
  end
end

-- The only write that can be refused comes first; refused, nothing has been written.
local added = redis.pcall('XADD', KEYS[3], ARGV[4] .. '-0', 't', ARGV[5], 'e', ARGV[7])
if type(added) == 'table' and added.err then
  return {'BROKEN', 'EVENTS_BROKEN'}
end
-- Replicas of the release before cannot read the record; to them this is a gap, behind which they
-- send a snapshot.
redis.call('XADD', KEYS[3], ARGV[4] .. '-1', 't', '', 'e', '')
redis.call('HSET', KEYS[2], 'v', ARGV[4], 'g', ARGV[5], 'b', ARGV[6])
if ARGV[8] == '' then
  redis.call('ZREM', KEYS[4], ARGV[9])
else
  redis.call('ZADD', KEYS[4], ARGV[8], ARGV[9])
end
if ARGV[12] == 'all' then
  redis.call('DEL', KEYS[3])
elseif ARGV[12] ~= '' then
  redis.call('XTRIM', KEYS[3], 'MINID', ARGV[12] .. '-0')
end
if ARGV[14] ~= '' then
  redis.call('PEXPIRE', KEYS[3], ARGV[14])
else
  redis.call('PERSIST', KEYS[3])
end
if ARGV[10] ~= '' then
  redis.call('HSET', KEYS[6], ARGV[9], ARGV[10])
end
for i = 16, #ARGV, 2 do
  seq = seq + 1
  redis.call('XADD', KEYS[5], epoch .. '-' .. string.format('%.0f', seq),
    'i', ARGV[i], 'p', last_id, 't', ARGV[9], 'v', ARGV[4], 'm', now,
    'c', string.format('%.0f', bytes), 'b', ARGV[i + 1])
  last_id = ARGV[i]
  bytes = bytes + #ARGV[i + 1]
end
if #ARGV > 15 then
  redis.call('HSET', KEYS[1], 'last_seq', string.format('%.0f', seq), 'last_id', last_id,
    'bytes', string.format('%.0f', bytes))
end
if redis.call('PUBSUB', 'SHARDNUMSUB', ARGV[13])[2] > tonumber(ARGV[15]) then
  redis.call('SPUBLISH', ARGV[13], ARGV[9] .. ' ' .. ARGV[4])
end
return {'DONE'}
