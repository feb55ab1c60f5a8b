#!lua flags=allow-oom
-- Takes a closed shard towards a new epoch. KEYS: shard, outbox, deadlines.
-- ARGV: step, the ledger's epoch and, to end it, how far it is applied. Each step may be repeated, and
-- is refused where the shard has gone on since the caller looked. Returns state, epoch to be ended.
--   end: notes which epoch the ledger is to end, so that all who reopen end the same one.
--   rebuild: begins the next epoch with nothing in its outbox and nothing due.
--   open: takes commits again.
local shard = redis.call('HMGET', KEYS[1], 'state', 'epoch', 'ending')
local state, epoch, ending = shard[1] or '', tonumber(shard[2] or '0'), tonumber(shard[3] or '-1')
local given = tonumber(ARGV[2])
if ARGV[1] == 'end' and state == 'closed' then
  -- A ledger that is one ahead with nothing applied was taken there for this very reopening.
  local begun = ending >= epoch and ending == given - 1 and ARGV[3] == '0'
  if not begun and ending ~= given then
    ending = given
    redis.call('HSET', KEYS[1], 'ending', ARGV[2])
  end
elseif ARGV[1] == 'rebuild' and state == 'closed' and ending == given - 1 and epoch < given then
  redis.call('UNLINK', KEYS[2], KEYS[3])
  redis.call('HSET', KEYS[1], 'state', 'rebuilding', 'epoch', ARGV[2], 'last_seq', '0',
    'last_id', '', 'applied_seq', '0', 'bytes', '0')
  redis.call('HDEL', KEYS[1], 'ending')
  state, ending = 'rebuilding', -1
elseif ARGV[1] == 'open' and state == 'rebuilding' and epoch == given then
  redis.call('HSET', KEYS[1], 'state', 'open')
  redis.call('HDEL', KEYS[1], 'reason', 'closed_ms')
  state = 'open'
end
return {state, ending}
