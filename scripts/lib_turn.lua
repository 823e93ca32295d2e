-- lib_turn: whose turn it is in a room that has started.
-- INCLUDES  event
-- give_turn stores and emits that a player has the turn for a number of seconds from now on, and
-- makes the room due when they are over. reason is set, skipped or left.
local function give_turn(publish, room_key, events_key, turns_key, seq, nonce, now_ms, now, version, room_id,
  turn_user, seconds, timeout, reason)
  local deadline = string.format('%d', now_ms + seconds * 1000)
  redis.call('HSET', room_key, 'turn', PACK(room_turn))
  redis.call('ZADD', turns_key, deadline, room_id)
  emit_event(publish, events_key, seq, nonce, now, 'room.turn',
    version .. '|' .. turn_user .. '|' .. deadline .. '|' .. reason)
end
