#!lua flags=allow-oom
-- Takes a shard towards open. KEYS: shard. ARGV: 'opening', or 'open' and the epoch.
-- 'opening' is written before the ledger is asked for the epoch, so that a ledger with an epoch and
-- a Redis without the key can only mean that Redis lost it. Returns the state that holds then.
local state = redis.call('HGET', KEYS[1], 'state')
if ARGV[1] == 'opening' and not state then
  redis.call('HSET', KEYS[1], 'state', 'opening', 'epoch', '0')
  return 'opening'
end
if ARGV[1] == 'open' and state == 'opening' then
  redis.call('HSET', KEYS[1], 'state', 'open', 'epoch', ARGV[2], 'last_seq', '0', 'last_id', '',
    'applied_seq', '0', 'bytes', '0')
  return 'open'
end
return state or ''
