-- lib_close_room: sets the last status of the room, and the time at which it is deleted.
-- INCLUDES  clock int_to_string room_params room
local function close_room(room, status)
  room.status = status
  set_field(room, 'finished', now_text)
  redis.call('ZADD', due_key, int_to_string(now_ms + room.retention_ms), room.id)
end
