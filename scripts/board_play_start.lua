-- board_play_start: begins a play of a player on a leaderboard and ends the oldest one when there
-- would be too many, or changes nothing.
-- INCLUDES  clock
-- KEYS      1 play  2 plays  then the listed plays
-- ARGV      1 play_id  2 user  3 keep_ms: how long a play is remembered  4 most_plays  then the ids
--           of the listed plays, in the order of the list
-- RETURNS   ok stale
-- INVARIANT plays lists each play of the player that can still take a score, oldest first; it has
--           at most as many as a player may have
-- After ok follows when the play began (ms). Stale means that the list is full: its ids follow, and
-- the script must run again with their keys.
most_plays = tonumber(most_plays)
local first_listed, first_id = NEXT_KEY, NEXT_ARG

local stored = redis.call('GET', play_key)
if stored then return {'ok', string.match(stored, '%d+$') or '0'} end
local ids = redis.call('LRANGE', plays_key, '0', '-1')
local open, values = #ids, {}
if open >= most_plays then
  for i, id in ipairs(ids) do
    if ARGV[first_id + i - 1] ~= id then return {'stale', unpack(ids)} end
  end
  values = redis.call('MGET', unpack(KEYS, first_listed, first_listed + open - 1))
  for _, value in ipairs(values) do
    if not value or value == 'used' then open = open - 1 end
  end
end

local _, now = read_clock()
for i, value in ipairs(values) do
  local is_open, listed_key = value and value ~= 'used', KEYS[first_listed + i - 1]
  if is_open and open >= most_plays then
    redis.call('DEL', listed_key)
    open, is_open = open - 1, false
  end
  if not is_open then redis.call('LREM', plays_key, '1', ids[i]) end
end
redis.call('SET', play_key, user .. '|' .. now, 'PX', keep_ms)
redis.call('RPUSH', plays_key, play_id)
if redis.call('PTTL', plays_key) < tonumber(keep_ms) then redis.call('PEXPIRE', plays_key, keep_ms) end
return {'ok', now}
