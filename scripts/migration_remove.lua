-- migration_remove: removes what a migration has replaced, or changes nothing after the deadline.
-- FLAGS     allow-oom
-- KEYS      1 target
-- ARGV      1 deadline_ms  2 kind: type that the key must have  then members of a zset; without
--           them the whole key is removed
-- RETURNS   ok stale
-- INVARIANT the same call twice is the same as once
deadline_ms = tonumber(deadline_ms)

local clock = redis.call('TIME')
if clock[1] * 1000 + clock[2] / 1000 > deadline_ms then return {'stale'} end
if redis.call('TYPE', target_key).ok ~= kind then return {'ok'} end
if #ARGV >= NEXT_ARG then
  redis.call('ZREM', target_key, unpack(ARGV, NEXT_ARG))
else
  redis.call('UNLINK', target_key)
end
return {'ok'}
