-- room_turn_skip: gives the turn to the next player when its time is over, ends the turns of a room
-- in which nobody does anything, forgets the turn of a room that goes on no more, or changes
-- nothing.
-- INCLUDES  clock skewed_clock event seats turn next_player
-- FLAGS     allow-oom
-- KEYS      1 room  2 events  3 turns
-- ARGV      1 publish  2 nonce  3 room_id  4 node_ms: the time of the node  5 least_ms: how long
--           the next turn lasts at least
-- RETURNS   ok stale
-- INVARIANT no turn ends before its time by the store's clock, and none ends twice; a room with a
--           turn is in turns, with its deadline; live has the position of the last event; turns
--           end after three times as many skips as there are active seats, if nothing else happens
-- Stale means that the turn ends with a forfeited seat: that is room_leave. With "clock" behind it,
-- the clocks of store and node differ.
local fields = redis.call('HMGET', room_key, 'live', 'turn', 'skips')
UNPACK(fields[1] or '', room_live without nonce changed)
UNPACK(fields[2] or '', room_turn)
if status ~= 'STARTED' or not turn_user then
  redis.call('ZREM', turns_key, room_id)
  return 'ok'
end
local now_ms, now = read_clock()
if is_skewed(now_ms, node_ms) then return {'stale', 'clock'} end
if now_ms < tonumber(deadline) then
  redis.call('ZADD', turns_key, deadline, room_id)
  return 'ok'
end
if timeout == 'forfeit' then return {'stale', nonce} end

-- Every change of the room has an event, so the number of the last skip is that of the last event
-- while nobody does anything.
local skips, last_skip = string.match(fields[3] or '', '^(%d+)|(%d+)$')
skips = last_skip == seq and tonumber(skips) or 0
local changed = now
version, seq = string.format('%d', version + 1), string.format('%d', seq + 1)
if skips >= 3 * active then
  end_turns(publish, room_key, events_key, turns_key, seq, nonce, now, version, room_id, 'skipped')
  redis.call('HSET', room_key, 'live', PACK(room_live))
  return 'ok'
end
give_turn(publish, room_key, events_key, turns_key, seq, nonce, now_ms, now, version, room_id,
  next_player(read_seats(room_key), turn_user), math.max(seconds * 1000, least_ms), seconds, timeout, 'skipped')
redis.call('HSET', room_key, 'live', PACK(room_live), 'skips', string.format('%d', skips + 1) .. '|' .. seq)
return 'ok'
