-- lines_trim: removes the oldest lines of a player, which the archive has, or changes nothing. It
-- needs no leader: the archive has the same lines under a name, whoever wrote them.
-- FLAGS     allow-oom
-- KEYS      1 wallet  2 lines
-- ARGV      1 how many lines were removed before  2 how many lines  3 last one of them
--           4 how many lines must be left
-- RETURNS   ok stale
-- INVARIANT the id of a line is the number of removed lines and its place in the list
local wallet_key, lines_key = KEYS[1], KEYS[2]
local before, count, last, least = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local base = redis.call('HGET', wallet_key, ':base') or '0'
local after = string.format('%.0f', before + count)
if base == after then return 'ok' end
if base ~= before or redis.call('LLEN', lines_key) < count + least then return 'stale' end
if redis.call('LINDEX', lines_key, count - 1) ~= last then return 'stale' end

redis.call('LTRIM', lines_key, count, -1)
redis.call('HSET', wallet_key, ':base', after)
return 'ok'
