-- board_seal: closes a season of a shard for good, once its time is over by the store's clock, or
-- changes nothing.
-- INCLUDES  clock skewed_clock
-- FLAGS     allow-oom
-- KEYS      1 season
-- ARGV      1 to: ms from which the season takes no scores  2 node_ms: the time of the node
-- RETURNS   ok stale
-- INVARIANT a sealed season takes no score
-- Stale means that it is too early, or, with "clock" behind it, that the clocks of store and node
-- differ.
local season = redis.call('HMGET', season_key, 'state', 'clock')
if season[1] then return 'ok' end
local now_ms = read_clock()
if is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
if math.max(now_ms, tonumber(season[2] or '0')) < tonumber(to) then return 'stale' end
redis.call('HSET', season_key, 'state', 'SEALED')
return 'ok'
