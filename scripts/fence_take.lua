-- fence_take: gives the holder of a lock its number, or changes nothing.
-- KEYS  1 lock  2 fence
-- ARGV  1 value
-- GIVES ok stale
-- KEEPS numbers only grow, and one is given only while the lock holds the caller's value
local lock, fence = KEYS[1], KEYS[2]
local value = ARGV[1]

if redis.call('GET', lock) ~= value then return {'stale'} end
return {'ok', string.format('%.0f', redis.call('INCR', fence))}
