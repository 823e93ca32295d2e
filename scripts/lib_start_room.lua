-- lib_start_room: starts the game and so locks the stakes; seats that are still reserved are
-- removed.
-- INCLUDES  clock int_to_string format_time room_params room remove_seat emit_room_event
local function start_room(room, by)
  for i = #room.seats, 1, -1 do
    if room.seats[i].state == 'reserved' then remove_seat(room, room.seats[i].user) end
  end
  room.status = 'STARTED'
  set_field(room, 'started', now_text)
  redis.call('ZADD', due_key, int_to_string(now_ms + room.match_ms), room.id)
  emit_room_event(room, 'room.started', '"by":"' .. by .. '","startedAt":"' .. format_time(now_ms) .. '"')
end
