#!lua
-- Lists an object of the room under a name, if there is room for one more.
-- KEYS: list. ARGV: 1 name, 2 value, 3 most names
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0
    and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
