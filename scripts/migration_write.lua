-- migration_write: writes a part of a key for a migration, or changes nothing after the deadline.
-- What is there already stays; items of a list are appended from the first one that it lacks.
-- KEYS      1 target
-- ARGV      1 deadline_ms  2 kind: string, hash, zset or list  3 expires_ms: time in ms at which
--           the key expires, '' for no expiry  4 before: number of items before these  then the
--           values: one text, fields and values, scores and members, or items
-- RETURNS   ok stale
-- INVARIANT the same call twice is the same as once
deadline_ms, before = tonumber(deadline_ms), tonumber(before)

local clock = redis.call('TIME')
if clock[1] * 1000 + clock[2] / 1000 > deadline_ms then return {'stale'} end
local held = redis.call('TYPE', target_key).ok
local length = held == 'list' and redis.call('LLEN', target_key) or 0
if kind == 'list' and length < before then return {'stale'} end

if held ~= kind and held ~= 'none' then redis.call('DEL', target_key) end -- an index of the old layout
if kind == 'string' then
  redis.call('SET', target_key, ARGV[NEXT_ARG])
elseif kind == 'hash' then
  redis.call('HSET', target_key, unpack(ARGV, NEXT_ARG))
elseif kind == 'zset' then
  redis.call('ZADD', target_key, unpack(ARGV, NEXT_ARG))
else
  local first = NEXT_ARG + length - before
  if first <= #ARGV then redis.call('RPUSH', target_key, unpack(ARGV, first)) end
end
if expires_ms ~= '' then redis.call('PEXPIREAT', target_key, expires_ms) end
return {'ok'}
