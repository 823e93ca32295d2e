-- lib_start_room: what every start of a room writes, but for the fields of the room.
-- INCLUDES  event
-- start_room emits room.started and moves the room in the indexes.
local function start_room(publish, events_key, open_key, created_key, started_key, due_key, seq, nonce, now, version,
  by, visibility, room_id, deadline)
  if visibility == 'public' then
    redis.call('ZREM', open_key, room_id)
    redis.call('ZREM', created_key, room_id)
    redis.call('ZADD', started_key, '0', room_id)
  end
  local due = string.format('%d', deadline)
  redis.call('ZADD', due_key, due, room_id)
  emit_event(publish, events_key, seq, nonce, now, 'room.started', version .. '|' .. by .. '|' .. due)
end
