-- lib_elect_host: makes the first active player the host when the host has gone.
-- INCLUDES  list_active_seats emit_room_event
-- The last host of an empty room stays its host.
local function elect_host(room)
  local list = list_active_seats(room)
  for _, seat in ipairs(list) do
    if seat.user == room.host then return end
  end
  if not list[1] then return end
  room.host, room.host_profile = list[1].user, list[1].profile
  emit_room_event(room, 'room.host_changed', '"userId":' .. room.host)
end
