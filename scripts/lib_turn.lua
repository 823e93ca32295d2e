-- lib_turn: whose turn it is in a room that has started.
-- INCLUDES  event
-- give_turn stores and emits that a player has the turn for turn_ms from now on, and makes the room
-- due when they are over. seconds is the length of the turns that follow by themselves. reason is
-- set, skipped or left.
local function give_turn(publish, room_key, events_key, turns_key, seq, nonce, now_ms, now, version, room_id,
  turn_user, turn_ms, seconds, timeout, reason)
  local deadline = string.format('%d', now_ms + turn_ms)
  redis.call('HSET', room_key, 'turn', PACK(room_turn))
  redis.call('ZADD', turns_key, deadline, room_id)
  emit_event(publish, events_key, seq, nonce, now, 'room.turn',
    version .. '|' .. turn_user .. '|' .. deadline .. '|' .. reason)
end

-- end_turns emits that nobody has the turn, and forgets the turn. reason is set or skipped.
local function end_turns(publish, room_key, events_key, turns_key, seq, nonce, now, version, room_id, reason)
  redis.call('HDEL', room_key, 'turn', 'skips')
  redis.call('ZREM', turns_key, room_id)
  emit_event(publish, events_key, seq, nonce, now, 'room.turn', version .. '|||' .. reason)
end
