#!lua
-- One all-in protection of a player on a day of the room; asked again for the same decision, it
-- counts once. KEYS: the player's day. ARGV: decision, replica, at most so many, keep ms.
-- Returns 1 when it holds, 0 when the day's are used up.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[3]) then
    return 0
  end
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return 1
