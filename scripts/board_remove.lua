-- board_remove: removes a player's entry from a season, or changes nothing when there is none.
-- INCLUDES  board
-- FLAGS     allow-oom
-- KEYS      1 season  2 rank  3 entries  4 details  then the zset of each segment
-- ARGV      1 user  2 segments
-- RETURNS   ok stale
-- INVARIANT a zset has exactly one member of each player who is not hidden
-- After stale follow the segments that are stored, which must be given with their keys.
local record = redis.call('HGET', entries_key, user)
if not record then return 'ok' end
local key, _, flags = read_record(record)
local stored = string.find(flags, 's', 1, true) and redis.call('HGET', details_key, user .. ':s') or ''
if stored ~= segments then return {'stale', stored} end

local member = key .. pack_bytes(tonumber(user), 6)
if string.find(flags, 'h', 1, true) then
  redis.call('HINCRBY', season_key, 'hidden', '-1')
else
  count_top(season_key, rank_key, member)
  redis.call('ZREM', rank_key, member)
  for i = NEXT_KEY, #KEYS do redis.call('ZREM', KEYS[i], member) end
end
redis.call('HDEL', entries_key, user)
redis.call('HDEL', details_key, user, user .. ':s', user .. ':t', user .. ':c')
return 'ok'
