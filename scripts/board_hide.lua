-- board_hide: takes a player's entry out of the order of a season and keeps its record, or puts it
-- back, or changes nothing.
-- INCLUDES  board
-- FLAGS     allow-oom
-- KEYS      1 season  2 rank  3 entries  4 details  then the zset of each segment
-- ARGV      1 user  2 hide: 1 or 0  3 segments
-- RETURNS   ok stale entry_not_found
-- INVARIANT a zset has exactly one member of each player who is not hidden
-- After stale follow the segments that are stored, which must be given with their keys.
local record = redis.call('HGET', entries_key, user)
if not record then return 'entry_not_found' end
local key, submissions, flags, nonce = read_record(record)
local is_hidden = string.find(flags, 'h', 1, true) ~= nil
if is_hidden == (hide == '1') then return 'ok' end
local stored = string.find(flags, 's', 1, true) and redis.call('HGET', details_key, user .. ':s') or ''
if stored ~= segments then return {'stale', stored} end

local member = key .. pack_bytes(tonumber(user), 6)
count_top(season_key, rank_key, member)
if hide == '1' then
  redis.call('ZREM', rank_key, member)
  for i = NEXT_KEY, #KEYS do redis.call('ZREM', KEYS[i], member) end
  flags = flags .. 'h'
else
  redis.call('ZADD', rank_key, '0', member)
  for i = NEXT_KEY, #KEYS do redis.call('ZADD', KEYS[i], '0', member) end
  flags = string.gsub(flags, 'h', '')
end
redis.call('HINCRBY', season_key, 'hidden', hide == '1' and '1' or '-1')
write_record(entries_key, user, key, submissions, flags, nonce)
return 'ok'
