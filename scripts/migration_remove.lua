-- migration_remove: removes what a migration has replaced, or changes nothing after the deadline.
-- FLAGS     allow-oom
-- KEYS      1 target
-- ARGV      1 deadline in ms  2 type that the key must have  then members of a zset; without them
--           the whole key is removed
-- RETURNS   ok stale
-- INVARIANT the same call twice is the same as once
local target_key = KEYS[1]
local deadline_ms, kind = tonumber(ARGV[1]), ARGV[2]

local clock = redis.call('TIME')
if clock[1] * 1000 + clock[2] / 1000 > deadline_ms then return {'stale'} end
if redis.call('TYPE', target_key).ok ~= kind then return {'ok'} end
if #ARGV > 2 then
  redis.call('ZREM', target_key, unpack(ARGV, 3))
else
  redis.call('UNLINK', target_key)
end
return {'ok'}
