#!lua flags=no-writes
-- A shard at one moment. KEYS: shard, outbox, lobby, then the tables that the lobby lists.
-- ARGV: at most so many outbox entries. Returns {} if the lobby lists others meanwhile, else
-- epoch, last_seq, applied_seq, {version, tag, blob} of each table, entries after the applied one.
if redis.call('HLEN', KEYS[3]) ~= #KEYS - 3 then
  return {}
end
local shard = redis.call('HMGET', KEYS[1], 'epoch', 'last_seq', 'applied_seq')
local epoch, applied = shard[1] or '0', shard[3] or '0'
local tables = {}
for i = 4, #KEYS do
  tables[i - 3] = redis.call('HMGET', KEYS[i], 'v', 'g', 'b')
end
return {epoch, shard[2] or '0', applied, tables,
  redis.call('XRANGE', KEYS[2], '(' .. epoch .. '-' .. applied, '+', 'COUNT', ARGV[1])}
