-- lib_autostart_room: starts a room with automatic start when it is full or all (enough of them)
-- are ready.
-- INCLUDES  list_active_seats start_room
local function autostart_room(room)
  if room.autostart ~= '1' or room.status ~= 'CREATED' then return end
  local list, ready = list_active_seats(room), true
  for _, seat in ipairs(list) do ready = ready and seat.ready == '1' end
  if #list == tonumber(room.max_players) or (ready and #list >= tonumber(room.min_players)) then
    start_room(room, 'auto')
  end
end
