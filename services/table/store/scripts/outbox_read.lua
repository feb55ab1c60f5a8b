#!lua flags=no-writes
-- Reads an outbox and compares it with the ledger. KEYS: shard, outbox.
-- ARGV: after seq, limit, the ledger's epoch, applied id, entries to look through for it.
-- Returns verdict ('' or a reason to close the shard), state, epoch, last_seq, entries.
local shard = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'last_seq', 'applied_seq')
local state, epoch = shard[1] or '', shard[2] or '0'
local after = tonumber(ARGV[1])
if state == '' or state == 'opening' then
  local lost = state == '' and tonumber(ARGV[3]) > 0
  return {lost and 'REDIS_LOST' or '', state, '0', '0', {}}
end
local last_seq, applied_seq = tonumber(shard[3] or '0'), tonumber(shard[4] or '0')
if state == 'closed' and epoch == '0' then
  return {'', state, '0', '0', {}}
end
local function id_of(seq)
  return epoch .. '-' .. string.format('%.0f', seq)
end
local function holds_applied()
  local at = redis.call('XRANGE', KEYS[2], id_of(after), id_of(after))[1]
  if at and at[2][2] == ARGV[4] then
    return true
  end
  -- The archive may be behind the ledger: then reading starts before what is applied.
  local later = redis.call('XRANGE', KEYS[2], id_of(math.max(after, applied_seq)), '+',
    'COUNT', ARGV[5])
  for i = 1, #later do
    if later[i][2][2] == ARGV[4] then
      return true
    end
  end
  return false
end
local verdict = ''
if tonumber(epoch) > tonumber(ARGV[3]) then
  -- Who asks looked at the ledger before this epoch began there: he is late, and gets nothing.
  return {'', state, epoch, shard[3] or '0', {}}
elseif epoch ~= ARGV[3] then
  verdict = 'EPOCH_DIFFERS'
elseif after > last_seq then
  verdict = 'OUTBOX_BEHIND_LEDGER'
elseif after >= applied_seq and ARGV[4] ~= '' and not holds_applied() then
  -- Who asks from before what is known as applied is late, and may ask for what is trimmed.
  verdict = 'APPLIED_ENTRY_MISSING'
end
local entries = redis.call('XRANGE', KEYS[2], '(' .. id_of(after), '+', 'COUNT', ARGV[2])
return {verdict, state, epoch, shard[3] or '0', entries}
