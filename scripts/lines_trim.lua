-- lines_trim: removes the oldest lines of a player, which the archive has, or changes nothing. It
-- needs no leader: the archive has the same lines under a name, whoever wrote them.
-- FLAGS     allow-oom
-- KEYS      1 wallet  2 lines
-- ARGV      1 before: how many lines were removed before  2 count: how many lines  3 last_text: the
--           last one  4 least: how many lines must be left
-- RETURNS   ok stale
-- INVARIANT the id of a line is the number of removed lines and its place in the list
local base = redis.call('HGET', wallet_key, ':base') or '0'
local after = string.format('%.0f', before + count)
if base == after then return 'ok' end
if base ~= before or redis.call('LLEN', lines_key) < count + least then return 'stale' end
if redis.call('LINDEX', lines_key, count - 1) ~= last_text then return 'stale' end

redis.call('LTRIM', lines_key, count, -1)
redis.call('HSET', wallet_key, ':base', after)
return 'ok'
