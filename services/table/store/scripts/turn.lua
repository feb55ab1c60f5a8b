#!lua flags=allow-oom
-- Takes the turn to do what one replica is enough for, or keeps it. KEYS: turn. ARGV: replica, lease ms.
-- Returns 1 while it is this replica's.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
